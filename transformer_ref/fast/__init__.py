"""The tricks of speed. Delete this folder and everything still works, slower: each file says which readable one it
must agree with, and a test holds the two equal. `faster.py` is the only file that knows it is here.
"""
