"""Before a class: release exercises, try answers, write your own exercises, examine the machine."""
