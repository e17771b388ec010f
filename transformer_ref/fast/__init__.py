"""Faster versions for CPUs. Without this folder everything still works, but more slowly.

Each file names the readable module that it must agree with, and a test compares the two. `faster.py` is the only file
that imports this folder. Packed tokens come in multiples of 32 rows: otherwise oneDNN compiles the matrix products of
every batch anew (`ONEDNN_VERBOSE=2` shows it as `create:cache_miss`). Freed memory is kept only while a command or a
`Translator` computes, since `mallopt` applies to the whole process.
"""
