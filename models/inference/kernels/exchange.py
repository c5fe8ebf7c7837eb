"""Updates of kept sums, compiled: which rows can be updated in place, and the update itself.

A kept sum has a hash of the neighbours in it, a sum of one number per neighbour: the hash does not
depend on how a list came about, and a neighbour can be added to it or removed from it. So a row
whose own relationships changed need not be gathered again if the difference of two hashes shows
what changed: new nodes, and at most one node that existed before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined, released
from ringfence.models.inference.kernels.fetch import AHEAD, fetch_row
from ringfence.models.inference.kernels.gcn import MAX_INCOMING, finish_row
from ringfence.models.inference.kernels.node_hash import node_hash

Array = Any

#: How a touched row that is needed comes by its sum: gathered again, or exchanged because its list
#: is the kept one (but for new nodes), with one neighbour more, or with one less.
GATHERED, KEPT, ONE_CAME, ONE_WENT = 0, 1, 2, 3
#: What a receiver does with a sender: take its change, put its old message in, or take that off.
EXCHANGE, PUT_IN, TAKE_OFF = 0, 1, 2


@inlined
def _find(values: Array, low: Any, high: Any, wanted: Any) -> Any:
    """Where ``wanted`` stands among ascending values from low to high; -1 where it doesn't."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and values[low] == wanted:
        return low
    return -1


@inlined
def _is_listed(node: Any, known: Any, sources: Array, begin: Any, end: Any) -> Any:
    """Whether a node that existed before is among the sources."""
    return node < known and _find(sources, begin, end, node) >= 0


@inlined
def _is_missing(node: Any, known: Any, sources: Array, begin: Any, end: Any) -> Any:
    """Whether a node that existed before is not among the sources."""
    return node < known and _find(sources, begin, end, node) < 0


@compiled
def compare_lists(
    rows: Array, offsets: Array, sources: Array, usable: Array, known: int, slots: Array,
    hashes: Array, order: Array, ordered: Array, ways: Array, partners: Array,
) -> None:  # fmt: skip
    """Find how each touched row, where its sum is usable, differs from its kept list.

    known: nodes from this number on are new. ordered: hashes of all rows, ascending, that
    of rows[order[i]] at place i. partners: the place in rows of the one that came or went.
    """
    for r in range(len(rows)):
        ways[r], partners[r] = GATHERED, -1
        begin, end = offsets[r], offsets[r + 1]
        if not usable[rows[r]] or end - begin >= MAX_INCOMING:
            continue
        now, then = np.uint64(0), np.uint64(0)
        for e in range(begin, end):
            source_hash = node_hash(sources[e])
            now += source_hash
            if sources[e] < known:
                then += source_hash
        slot = slots[rows[r]] - 1
        kept = hashes[slot]
        if then == kept:
            ways[r] = KEPT
        else:
            came = _find(ordered, 0, len(ordered), then - kept)
            went = _find(ordered, 0, len(ordered), kept - then)
            if came >= 0 and _is_listed(rows[order[came]], known, sources, begin, end):
                ways[r], partners[r] = ONE_CAME, order[came]
            elif went >= 0 and _is_missing(rows[order[went]], known, sources, begin, end):
                ways[r], partners[r] = ONE_WENT, order[went]
        if ways[r] != GATHERED:
            hashes[slot] = now


@compiled
def find_pairs(
    offsets: Array, receivers: Array, needed: Array, senders: Array, hearing: Array
) -> int:
    """Fill ``senders`` and ``hearing`` with the pairs of sender and receiver that are needed.

    senders: places of the touched rows. Returns how many pairs there are.
    """
    filled = 0
    for k in range(len(offsets) - 1):
        for e in range(offsets[k], offsets[k + 1]):
            i = receivers[e]
            senders[filled] = k
            hearing[filled] = i
            filled += needed[i]
    return filled


@compiled
def count_exchanges(
    rows: Array, senders: Array, hearing: Array, loud: Array, needed: Array, usable: Array,
    ways: Array, counts: Array, again: Array,
) -> None:  # fmt: skip
    """Count the changes of each receiver's sum; mark those that must be gathered again.

    needed, usable bool [n]: rows that must be up to date, rows whose kept sum is. loud: messages
    too large for an exact sum.
    """
    for e in range(len(senders)):
        i = hearing[e]
        if loud[senders[e]] or not usable[i]:
            again[i] = True
        else:
            counts[i] += 1
    for k in range(len(rows)):
        i = rows[k]
        if needed[i]:
            if loud[k] or ways[k] == GATHERED:
                again[i] = True
            else:
                counts[i] += 1 if ways[k] == KEPT else 2


@compiled
def list_receivers(counts: Array, again: Array, out: Array, offsets: Array) -> int:
    """Fill ``out`` with the rows whose sums take changes, ``offsets`` with where those begin."""
    filled, total = 0, 0
    for i in range(len(counts)):
        if counts[i] > 0 and not again[i]:
            out[filled], offsets[filled] = i, total
            total += counts[i]
            counts[i] = offsets[filled]  # from here on: where its next change is put
            filled += 1
    offsets[filled] = total
    return filled


@compiled
def list_exchanges(
    rows: Array, pair_senders: Array, hearing: Array, needed: Array, again: Array, ways: Array,
    partners: Array, cursor: Array, senders: Array, actions: Array,
) -> None:  # fmt: skip
    """Fill the changes of each receiver: places of the senders in ``rows``, and what to do."""
    for e in range(len(hearing)):
        i = hearing[e]
        if not again[i]:
            senders[cursor[i]] = pair_senders[e]
            actions[cursor[i]] = EXCHANGE
            cursor[i] += 1
    for k in range(len(rows)):
        i = rows[k]
        if needed[i] and not again[i]:
            senders[cursor[i]] = k
            actions[cursor[i]] = EXCHANGE
            cursor[i] += 1
            if ways[k] != KEPT:
                senders[cursor[i]] = partners[k]
                actions[cursor[i]] = PUT_IN if ways[k] == ONE_CAME else TAKE_OFF
                cursor[i] += 1


@released
def exchange_messages(
    start: int, stop: int, receivers: Array, offsets: Array, senders: Array, actions: Array,
    messages: Array, scale: Array, bias: Array, weights: Array, second: Array, slots: Array,
    sums: Array,
) -> None:  # fmt: skip
    """sum_i += new_j - old_j for each changed sender j of receiver i; then second_i.

    messages [senders, 2 width]: the old one, then the new.
    """
    hidden, total = np.empty(len(bias), np.float32), np.empty(len(bias), np.float64)
    width, last = len(bias), offsets[stop]
    for r in range(start, stop):
        if r + 2 < stop:
            fetch_row(sums, slots[receivers[r + 2]] - 1)
            fetch_row(second, receivers[r + 2])
        i = receivers[r]
        kept = sums[slots[i] - 1]
        for c in range(len(total)):
            total[c] = kept[c]
        for e in range(offsets[r], offsets[r + 1]):
            if e + AHEAD < last:
                fetch_row(messages, senders[e + AHEAD])
            both = messages[senders[e]]
            if actions[e] == EXCHANGE:
                for c in range(width):
                    total[c] += np.float64(both[width + c]) - np.float64(both[c])
            elif actions[e] == PUT_IN:
                for c in range(width):
                    total[c] += both[c]
            else:
                for c in range(width):
                    total[c] -= both[c]
        for c in range(len(total)):
            kept[c] = total[c]
        finish_row(total, scale[i], bias, hidden, weights, second[i])
