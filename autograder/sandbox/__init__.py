"""Runs untrusted code: the backends, what they hide, and the limits on time, memory, processes and disk.

- A warm process starts inside the sandbox, because bubblewrap executes a program and nothing can be forked into it
  from outside. Each submission runs in a child that unshares again, gives up all rights and many system calls, and is
  killed together with everything it started. The warm process never runs a learner's code.
- Budgets count processor time plus time asleep, never time on the clock. If a sandbox breaks, it is replaced and the
  notebook runs once more; only what a notebook did itself counts against it.
- `hiding` lists what a submission may see: folders of programs, read-only, and its own folder.
- Where namespaces are forbidden, Landlock and a filter of system calls are used. They cannot hide that a file exists,
  nor its size.
- `limited_process` runs our own code on strangers' files, in a fork with limits on time and memory.
- Usage is checked when the sandbox keeps us waiting or a tenth of a second has passed, not at every request.
"""
