"""The paper's experiments, remade with the code that production uses."""
