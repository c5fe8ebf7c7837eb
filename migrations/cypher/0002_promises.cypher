// What sets and runs say since promises have levels, bands and several alphas. One statement each.
// Sets that stand already are those of one alpha: each class that they point to is in the set, and
// their level is their alpha. In parts, so that a graph of many sets needs no large transaction.

MATCH ()-[m:MAY_BE]->(:RingfenceClass) WHERE m.in_set IS NULL
CALL (m) { SET m.in_set = true } IN TRANSACTIONS OF 10000 ROWS;

MATCH ()-[e:EVALUATED]->(r:RingfenceRun) WHERE e.level IS NULL AND r.level IS NULL
CALL (e) { SET e.level = e.alpha } IN TRANSACTIONS OF 10000 ROWS;

MATCH (r:RingfenceRun) WHERE r.level IS NULL AND r.promise IS NULL
SET r.level = r.alpha, r.promise = 'marginal';
