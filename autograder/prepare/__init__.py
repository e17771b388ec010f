"""Before a class: release exercises, try answers, write exercises of one's own, examine the machine."""
