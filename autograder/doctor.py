"""Is this installation fit for grading? `python -m autograder doctor` checks it; with --matrix, the catalogue too."""

import argparse

from autograder.matrix import print_matrix


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE", help="try the known answers of these")


def run(chosen: argparse.Namespace) -> int:
    """Print the matrix of known answers; 1 if any is judged wrongly."""
    return print_matrix(chosen.exercises)
