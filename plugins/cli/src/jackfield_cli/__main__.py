"""`python -m jackfield_cli` is the command line too."""

from jackfield_cli import main

main(prog_name="jackfield")
