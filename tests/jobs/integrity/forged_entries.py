"""Lines of the tamper matrix in which every row fits its seal: entries that follow from nothing.

A row is edited for one run or audit and put back, and the verb does not compare what it reads: an
older version, or a changed program. What it sealed then has to be named by what it says and what
was expected of it. The edits are those of `tests/end_to_end/restored_edits.py`, by name.
"""

FORGED = {
    "levels": ("levels (used) is [0.", "levels (adaptive) is ["),
    "label": ("joined ",),
    "p_values": ("levels (adaptive) is [", "levels (answered) is ["),
    "watch": ("watch (state) is {",),
    "covered": ("coverage of run ", "covered is ", ", expected "),
    "alpha": ("alpha is 0.6, but the run has 0.1",),
}
"""Name of the edit: parts of what `ringfence verify` says."""
