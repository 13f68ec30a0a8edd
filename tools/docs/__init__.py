"""The documentation that is made from the sources, and the checks of all of it.

``python3 -m docs`` (PYTHONPATH=tools; `make docs`) writes what is generated; with --check it
writes nothing and fails on the first difference. Only the standard library is needed.

    source.py    where the sources are, and what is extracted from them
    kerneldoc.py the kernel-doc comments of functions, structures and trace events
    pages.py     docs/reference/*.md: parameters, statistics, trace events, debugfs, interface, boot
    man.py       build/man: pages of sections 4, 7, 8 and 9
    shaper.py    the page and the manual page of the qdisc "apic"
    embed.py     blocks of README.md and docs/ that repeat a source, a page or a result
    words.py     words that the documentation avoids, and the links between its pages
    results/     docs/results: the demo and the benchmark, with the record of what made them
"""
