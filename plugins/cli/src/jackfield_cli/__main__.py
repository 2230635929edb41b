"""Runs the command line with `python -m jackfield_cli`."""

from jackfield_cli import main

main(prog_name="jackfield")
