"""What people see, apart from where: tables, charts, one node, the status."""
