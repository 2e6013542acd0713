BEGIN TRANSACTION;
CREATE TABLE actions (seq INTEGER NOT NULL, id VARCHAR(32) NOT NULL, target VARCHAR(32) NOT NULL, tried BIGINT NOT NULL, unresolved BIGINT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq), UNIQUE (id));
CREATE TABLE alerts (
	"key" VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "alerts" VALUES('5bb95d8732c704e1f9f7d92190cdadd6','{"key":{"cluster":"h100","check":"fs","subject":"/scratch"},"id":"alert-/scratch","kind":"fs","status":"critical","summary":"full","since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"last":{"wall":1800000001000000,"boot":"boot-1","mono":1001000000},"firing":false,"severity":"warning","fired":null,"clear_since":null,"runs":1,"count":0,"details":"","commands":[],"labels":{},"values":{},"runbook":"","told":{}}');
CREATE TABLE gpu_events (seq INTEGER NOT NULL, id VARCHAR(32) NOT NULL, gpu VARCHAR(32) NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq), UNIQUE (id));
CREATE TABLE gpu_stays (seq INTEGER NOT NULL, gpu VARCHAR(32) NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq));
CREATE TABLE gpus ("key" VARCHAR(32) NOT NULL, node VARCHAR(32) NOT NULL, seen BIGINT NOT NULL, heat DOUBLE NOT NULL, recipe VARCHAR(32) NOT NULL, marked BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY ("key"));
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	token BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	expires BIGINT NOT NULL, 
	body TEXT NOT NULL, thinned BIGINT DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,1,2,0,'{"holder":"","since":0}',0);
CREATE TABLE memory (
	"key" VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "memory" VALUES('8b79bd5881da97c7a4dc87eb1a99a2e2','{"check": "fs", "memory": {"value": [1, "\u0000", "\ud800"]}}');
CREATE TABLE moments (
	id INTEGER NOT NULL, 
	"key" VARCHAR(32) NOT NULL, 
	at BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "moments" VALUES(1,'5f74448397c4bd5871e7215ef2933fba',1800000000000000,'{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}');
INSERT INTO "moments" VALUES(2,'fc58f1a0d3193b0975dcef375a6c14cb',1800000060000000,'{"wall":1800000060000000,"boot":"boot-1","mono":1060000000}');
CREATE TABLE orders ("key" VARCHAR(32) NOT NULL, ends BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY ("key"));
CREATE TABLE outbox (
	seq INTEGER NOT NULL, 
	alert VARCHAR(32) NOT NULL, 
	done BIGINT NOT NULL, 
	outcome TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "outbox" VALUES(1,'dfe39494505d90ecd238c41445c8ab1d',1800000005000000,'{"at":{"wall":1800000005000000,"boot":"boot-1","mono":1005000000},"sent":true,"text":"250 ok"}','{"seq":1,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"sent","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","dry_run":false},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
INSERT INTO "outbox" VALUES(2,'dfe39494505d90ecd238c41445c8ab1d',0,'','{"seq":2,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"waiting","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","dry_run":false},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
CREATE TABLE readings (seq INTEGER NOT NULL, node VARCHAR(32) NOT NULL, at BIGINT NOT NULL, departure BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq));
CREATE TABLE runs (
	"key" VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "runs" VALUES('8b79bd5881da97c7a4dc87eb1a99a2e2','{"check":"fs","kind":"fs","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"status":"ok","summary":"fine","duration":0.25}');
CREATE TABLE samples (
	series INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	PRIMARY KEY (series, moment)
)
 WITHOUT ROWID

;
INSERT INTO "samples" VALUES(1,1,1.0);
INSERT INTO "samples" VALUES(1,2,2.0);
CREATE TABLE schema_version (
	version BIGINT NOT NULL
);
INSERT INTO "schema_version" VALUES(5);
CREATE TABLE series (
	id INTEGER NOT NULL, 
	"key" VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "series" VALUES(1,'eb9104dfafff23ac464fbb1076686b9b','["fs","/scratch","used"]');
CREATE TABLE switches ("key" VARCHAR(32) NOT NULL, body TEXT NOT NULL, PRIMARY KEY ("key"));
CREATE TABLE transitions (
	seq INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	alert VARCHAR(32) NOT NULL, 
	at BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
INSERT INTO "transitions" VALUES(1,'7a619c229a0688aa9dc61d128ef1b64f','dfe39494505d90ecd238c41445c8ab1d',1800000000000000,'{"id":"transition-1","alert":"alert-/scratch","key":{"cluster":"h100","check":"fs","subject":"/scratch"},"kind":"fs","reason":"firing","status":"critical","severity":"critical","summary":"number 1","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}}');
CREATE INDEX transitions_at ON transitions (at);
CREATE INDEX transitions_alert ON transitions (alert);
CREATE INDEX outbox_alert ON outbox (alert);
CREATE INDEX outbox_done ON outbox (done, seq);
CREATE INDEX moments_at ON moments (at);
CREATE INDEX actions_target ON actions (target);
CREATE INDEX actions_tried ON actions (tried, seq);
CREATE INDEX actions_unresolved ON actions (unresolved);
CREATE INDEX readings_node ON readings (node, seq);
CREATE INDEX readings_departure ON readings (departure, seq);
CREATE INDEX gpus_node ON gpus (node);
CREATE INDEX gpu_stays_gpu ON gpu_stays (gpu, seq);
CREATE INDEX gpu_events_at ON gpu_events (at);
CREATE INDEX gpu_events_gpu ON gpu_events (gpu, at);
COMMIT;
