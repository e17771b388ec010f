"""How a class is to be graded."""

from dataclasses import dataclass

SANDBOX = "ATTENTION_BY_HAND_SANDBOX"  # the environment variable that names a way to isolate


@dataclass(frozen=True)
class Options:
    """The options of a teacher.

    students: names or patterns such as "a*"; none means everyone. workers: processes on this machine. force: grade
    again what is graded. outdated: only grade again what was graded by older rules. resume: continue the interrupted
    run with its options. trust: without a sandbox. scheduler: address of a Dask scheduler whose workers are used
    instead of this machine's.
    """

    students: tuple[str, ...] = ()
    workers: int = 1
    force: bool = False
    outdated: bool = False
    resume: bool = False
    trust: bool = False
    scheduler: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that are set in each worker."""
        return {SANDBOX: "none"} if self.trust else {}
