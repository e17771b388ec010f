"""How much of a machine one submission may use.

The budget of one check is not here: it is `Exercise.seconds` in the catalogue, enforced by `sandbox.runner`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one submission, its subprocesses included.

    cell_seconds, notebook_seconds: processor time plus time in which all processes sleep, so that a loaded machine
    costs nobody anything. memory_bytes: on top of the warm process. processes: including threads. file_bytes: the
    largest file; disk_bytes, files: for each of /tmp and the home folder, which are in memory. output_bytes: the part
    of one cell's outputs that is kept; notebook_output_bytes: the same for all cells together.
    """

    cell_seconds: float = 60.0
    notebook_seconds: float = 300.0
    memory_bytes: int = 3 << 30
    processes: int = 64
    file_bytes: int = 64 << 20
    disk_bytes: int = 256 << 20
    files: int = 100_000
    output_bytes: int = 1 << 20
    notebook_output_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name}: expected a positive number, got {value!r}")
