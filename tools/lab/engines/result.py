"""What a guest that came to its end left behind, and the line it is judged by."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """Outcome of a VM of either kind. A VM without a verdict has none: it raises LostVM."""

    verdict: str  # "ok", or what was wrong: "exit status 1", "splat in the kernel log"
    output: str  # what the script printed, standard output and error
    kernel_log: str  # dmesg at the end
    console: str  # what came out of the console, kernel messages among it
    files: dict[str, bytes] = field(default_factory=dict)  # handed over by `put NAME`
    before: str = ""  # of a guest that hibernates: what the script printed before

    @property
    def ok(self) -> bool:
        """Whether the script ended well and the kernel log is clean."""
        return self.verdict == "ok"

    def check(self) -> "Result":
        """Return self; AssertionError, with all that is known, unless it is ok."""
        if not self.ok:
            raise AssertionError(
                f"VM: {self.verdict}\n--- output ---\n{self.output}\n"
                f"--- kernel log ---\n{self.kernel_log[-8000:]}"
            )
        return self
