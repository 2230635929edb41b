"""`python -m jackfield` is the command line too."""

from jackfield.cli import main

main(prog_name="jackfield")
