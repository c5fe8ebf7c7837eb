// What ringfence writes beside your nodes. One statement each, ended by a semicolon.

// A migration file is applied once; its checksum is kept here.
CREATE CONSTRAINT ringfence_migration IF NOT EXISTS
FOR (m:RingfenceMigration) REQUIRE m.number IS UNIQUE;

// A run, by "project/seq".
CREATE CONSTRAINT ringfence_run IF NOT EXISTS
FOR (r:RingfenceRun) REQUIRE r.id IS UNIQUE;

// A class that sets point to.
CREATE CONSTRAINT ringfence_class IF NOT EXISTS
FOR (c:RingfenceClass) REQUIRE (c.project, c.name) IS UNIQUE;

// The coverage of one slice of one run.
CREATE CONSTRAINT ringfence_coverage IF NOT EXISTS
FOR (a:CoverageAudit) REQUIRE a.id IS UNIQUE;

// The highest lease token that has written for a project.
CREATE CONSTRAINT ringfence_fence IF NOT EXISTS
FOR (f:RingfenceFence) REQUIRE f.project IS UNIQUE;

// Once per node, ever: two writers can't both create it.
CREATE CONSTRAINT ringfence_evaluated IF NOT EXISTS
FOR ()-[e:EVALUATED]-() REQUIRE e.key IS UNIQUE;
