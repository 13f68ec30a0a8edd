"""The lab: stock Debian kernels, and machines to run them in, without hardware.

Start with one of these; ``python3 -m lab`` runs them by hand (see __main__.py):

    kernel = kernels.ensure("6.1")          a stock kernel, with its compiler, in the cache
    built = build.build(kernel)             this tree's modules, built for it
    virtual.run(kernel, "a shell script")   one instruction is one nanosecond; repeats exactly
    smp.run(kernel, "a shell script")       several CPUs, real races, times mean nothing
    bochs.run(kernel, "a shell script")     TSC deadline, x2APIC, an Intel model; repeats exactly

The files, from the bottom up:

    errors.py     what goes wrong, as exceptions; a lost VM is one of them
    cache.py      where things are kept, and how a directory appears there at once
    debian.py     packages of any Debian suite, unpacked without being installed
    chroot.py     run a command inside an unpacked suite
    kernels.py    the table of kernels; each with its suite's compiler and headers
    vmlinux.py    a kernel image without its compression
    build.py      build modules, ours or a consumer's, for one of the kernels
    unpacked.py   programs of packages in the cache, run with their own libraries
    userland.py   QEMU and the guest's programs, of one version everywhere
    qemu.py       that QEMU as a program
    native.py     compile what is in guest/
    initramfs.py  write a guest's files as an archive whose bytes repeat
    splats.py     what in a kernel log means that the kernel found itself broken
    result.py     what a guest leaves behind
    image.py      guests without disks: what is in them, what they leave behind
    diskless.py   guests of QEMU whose whole system is their initramfs
    virtual.py    such guests in virtual time
    sleeper.py    such guests that suspend to RAM
    hibernator.py such guests that are off for a while, and go on from their image
    uefi.py       such guests with firmware that knows certificates
    successor.py  such guests in which another kernel takes over, by kexec
    smp.py        guests with several CPUs, through virtme-ng
    pvh.py        start a kernel from memory, without a boot loader
    bochs.py      guests in Bochs
    guest/        what runs inside: smp in guests of smp.py, the rest in the others

Everything that is fetched or made lives in ~/.cache/apic-timer. Packages are Debian's, from the
mirror that this machine's apt uses.
"""
