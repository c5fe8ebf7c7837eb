"""Before the first run: init, doctor, migrate, and a prediction of the memory needed."""
