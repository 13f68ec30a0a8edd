"""The lab's error classes. None of them is ever turned into a skip."""


class LabError(Exception):
    """Something the lab needs could not be had: a package, a kernel, a tool."""


class BuildError(LabError):
    """A module did not compile; the message ends with the compiler's output."""


class LostVM(LabError):
    """A VM ended without a verdict: panic, hang, time limit. The message ends with its console."""

    def __init__(self, reason: str, console: str):
        tail = "\n".join(console.splitlines()[-60:])
        super().__init__(f"{reason}\n--- last lines of the console ---\n{tail}")
        self.reason = reason
        self.console = console
