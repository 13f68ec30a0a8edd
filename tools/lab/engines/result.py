"""The result of a guest that ended properly, and its verdict."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """Outcome of a VM of any engine. A VM without a verdict has no result: it raises LostVM."""

    verdict: str  # "ok", or what was wrong: "exit status 1", "splat in the kernel log"
    output: str  # output of the script, standard output and error
    kernel_log: str  # dmesg at the end
    console: str  # output of the console, including kernel messages
    files: dict[str, bytes] = field(default_factory=dict)  # returned by `put NAME`
    before: str = ""  # of a guest that hibernates: the script's output before that

    @property
    def ok(self) -> bool:
        """Whether the script ended well and the kernel log is clean."""
        return self.verdict == "ok"

    def check(self) -> "Result":
        """Return self; AssertionError, with everything known, unless it is ok."""
        if not self.ok:
            raise AssertionError(
                f"VM: {self.verdict}\n--- output ---\n{self.output}\n"
                f"--- kernel log ---\n{self.kernel_log[-8000:]}"
            )
        return self
