BEGIN TRANSACTION;
CREATE TABLE actions (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  target VARCHAR(32) NOT NULL,
  tried BIGINT NOT NULL,
  unresolved BIGINT NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "actions" VALUES(1,'5c3d29a9af8d97bbf945ad3d9c346471','bc3eee45898bd828bfffff797dda2ef2',1,1,1800000000000000,'{"id":"one","action":"drain","target":"n1","reason":"bad","by":"test","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"outcome":"intended","params":{},"evidence":{},"commands":[],"rule":"","why":"","detail":"","ended":null,"checked":[],"mark":"","forced":false,"subject":"","log":""}');
CREATE TABLE alerts (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "alerts" VALUES('5f1fe74d1de0cb64544e573550de4431','{"key": {"cluster": "h100", "check": "fs", "subject": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00"}, "id": "alert-NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "kind": "fs", "status": "critical", "summary": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "last": {"wall": 1800000001000000, "boot": "boot-1", "mono": 1001000000}, "firing": false, "severity": "warning", "fired": null, "clear_since": null, "rose": null, "began": null, "runs": 1, "count": 0, "details": "", "commands": [], "labels": {}, "values": {}, "runbook": "", "told": {}, "on_hold": null, "changes": [], "flapping": false, "over": false, "acked": false, "incident": "", "freed": null, "tell_once": false, "owner_muted": false, "guidance": {}, "deaths": [], "death_events": [], "acts": [], "unseen": {}, "unseen_told": []}');
INSERT INTO "alerts" VALUES('a79cd3133158ecec6b24e64796a1f44e','{"key":{"cluster":"h100","check":"fs","subject":"/b"},"id":"alert-/b","kind":"fs","status":"critical","summary":"full","since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"last":{"wall":1800000001000000,"boot":"boot-1","mono":1001000000},"firing":false,"severity":"warning","fired":null,"clear_since":null,"rose":null,"began":null,"runs":1,"count":0,"details":"","commands":[],"labels":{},"values":{},"runbook":"","told":{},"on_hold":null,"changes":[],"flapping":false,"over":false,"acked":false,"incident":"","freed":null,"tell_once":false,"owner_muted":false,"guidance":{},"deaths":[],"death_events":[],"acts":[],"unseen":{},"unseen_told":[]}');
CREATE TABLE gpu_events (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  gpu VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "gpu_events" VALUES(1,'ad5686e89430b5a91a6afd20d7599a42','cb933450c3081b33cdb1f71040471d67',1800000061000000,'{"id": "e1", "subject": "GPU-a", "what": "xid 79", "at": {"wall": 1800000061000000, "boot": "boot-1", "mono": 1061000000}, "node": "n2", "text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "count": 1, "by": ""}');
INSERT INTO "gpu_events" VALUES(2,'b7b07b545dd3908592cb26d9237362b5','ad5253779bf665e7e12fb65d0c747ec6',1800000062000000,'{"id": "GPU-b marked lemon 1800000062000000", "subject": "GPU-b", "what": "marked lemon", "at": {"wall": 1800000062000000, "boot": "boot-1", "mono": 1062000000}, "node": "n1", "text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "count": 1, "by": "alice"}');
CREATE TABLE gpu_stays (
  seq INTEGER NOT NULL PRIMARY KEY,
  gpu VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "gpu_stays" VALUES(1,'cb933450c3081b33cdb1f71040471d67',1800000000000000,'{"node":"n1","slot":"0","began":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"ended":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}}');
INSERT INTO "gpu_stays" VALUES(2,'ad5253779bf665e7e12fb65d0c747ec6',1800000000000000,'{"node":"n1","slot":"1","began":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"ended":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}}');
INSERT INTO "gpu_stays" VALUES(3,'cb933450c3081b33cdb1f71040471d67',1800000060000000,'{"node":"n2","slot":"0","began":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000},"ended":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000}}');
CREATE TABLE gpus (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  node VARCHAR(32) NOT NULL,
  seen BIGINT NOT NULL,
  heat DOUBLE NOT NULL,
  recipe VARCHAR(32) NOT NULL,
  marked BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "gpus" VALUES('cb933450c3081b33cdb1f71040471d67','52bcf867145e8fe5582784e77f74481f',1800000060000000,2.0,'0925d15c274b04b69192f513c6507a1c',0,'{"subject":"GPU-a","serial":"","model":"","node":"n2","slot":"0","first":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"seen":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000},"mark":"","reason":"","by":"","heat":2.0,"warmed":{"wall":1800000061000000,"boot":"boot-1","mono":1061000000},"recipe":"[2419200.0,[]]","cleared":0,"outages":[]}');
INSERT INTO "gpus" VALUES('ad5253779bf665e7e12fb65d0c747ec6','bc3eee45898bd828bfffff797dda2ef2',1800000000000000,0.0,'',1,'{"subject": "GPU-b", "serial": "", "model": "", "node": "n1", "slot": "1", "first": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "seen": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "mark": "lemon", "reason": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "by": "alice", "heat": 0.0, "warmed": null, "recipe": "", "cleared": 0, "outages": []}');
CREATE TABLE leader (
  id INTEGER NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  body TEXT NOT NULL,
  thinned BIGINT NOT NULL DEFAULT '0'
);
INSERT INTO "leader" VALUES(1,1,3,0,'{"holder":"","since":0}',0);
CREATE TABLE memory (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "memory" VALUES('8b79bd5881da97c7a4dc87eb1a99a2e2','{"check": "fs", "memory": {"text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "number": 1.5}}');
CREATE TABLE moments (
  id INTEGER NOT NULL PRIMARY KEY,
  key VARCHAR(32) NOT NULL UNIQUE,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "moments" VALUES(1,'5f74448397c4bd5871e7215ef2933fba',1800000000000000,'{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}');
CREATE TABLE orders (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  ends BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "orders" VALUES('cfff37b063f07ea3383537739e34b63d',1800000100000000,'{"silence": {"id": "s1", "match": {"severity": null, "status": null, "check": ["fs"], "kind": null, "cluster": null, "subject": null, "node": null, "user": null, "partition": null, "job": null, "labels": {}, "matchers": []}, "starts": 1, "ends": 1800000100000000, "who": "alice", "how": "", "reason": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "nodes": null, "alerts": null}, "ack": null, "remark": null}');
INSERT INTO "orders" VALUES('4e282708111d6cd386f81f82a4a23060',1807776001000000,'{"silence":null,"ack":{"alert":"alert-/b","at":{"wall":1800000001000000,"boot":"boot-1","mono":1001000000},"who":"bob","how":"","note":""},"remark":null}');
CREATE TABLE outbox (
  seq INTEGER NOT NULL PRIMARY KEY,
  alert VARCHAR(32) NOT NULL,
  done BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "outbox" VALUES(1,'dfe39494505d90ecd238c41445c8ab1d',1800000005000000,'{"at":{"wall":1800000005000000,"boot":"boot-1","mono":1005000000},"sent":true,"text":"250 ok","message":1}','{"seq":1,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"sent","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","noticed":"","setup_place":"","config":"","acts":[],"guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
INSERT INTO "outbox" VALUES(2,'dfe39494505d90ecd238c41445c8ab1d',0,'','{"seq":0,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"waits","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","noticed":"","setup_place":"","config":"","acts":[],"guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
INSERT INTO "outbox" VALUES(3,'dfe39494505d90ecd238c41445c8ab1d',1800000006000000,'{"at":{"wall":1800000006000000,"boot":"boot-1","mono":1006000000},"sent":false,"text":"no such user","message":0}','{"seq":3,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"given up","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","noticed":"","setup_place":"","config":"","acts":[],"guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":true,"error":"no such user"}');
CREATE TABLE readings (
  seq INTEGER NOT NULL PRIMARY KEY,
  node VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  departure BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "readings" VALUES(1,'bc3eee45898bd828bfffff797dda2ef2',1800000000000000,0,'{"node":"n1","state":"IDLE+DRAIN","reason":"bad dimm, RMA 4711","user":"root","reason_time":1700000000,"out":true,"seen":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"left":null,"returned":null}');
CREATE TABLE recent_passes (
  source VARCHAR(32) NOT NULL,
  base INTEGER NOT NULL,
  key VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (source, base)
) WITHOUT ROWID;
INSERT INTO "recent_passes" VALUES('8b79bd5881da97c7a4dc87eb1a99a2e2',4294967296,'5c80afa21332a2f1b5a4e8b67136ba00',1800000001000000,'{"wall":1800000001000000,"boot":"boot-1","mono":1001000000}');
CREATE TABLE recent_samples (place INTEGER NOT NULL PRIMARY KEY, value DOUBLE NOT NULL);
INSERT INTO "recent_samples" VALUES(4294967297,9e999);
CREATE TABLE run_ledger (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  ended BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "run_ledger" VALUES('bffd656cd50e7974ea44e26dd7d94658',1800000001000000,'{"run": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "kind": "saved", "began": 1800000000000000, "ended": 1800000001000000}');
CREATE TABLE runs (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "runs" VALUES('8b79bd5881da97c7a4dc87eb1a99a2e2','{"check":"fs","kind":"fs","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"status":"ok","summary":"fine","duration":0.25,"after":0.0,"blind":false}');
CREATE TABLE samples (
  series INTEGER NOT NULL,
  moment INTEGER NOT NULL,
  value DOUBLE NOT NULL,
  PRIMARY KEY (series, moment)
) WITHOUT ROWID;
INSERT INTO "samples" VALUES(1,1,1.0);
INSERT INTO "samples" VALUES(2,1,2.0);
CREATE TABLE schema_version (version BIGINT NOT NULL, oldest BIGINT NOT NULL DEFAULT 0);
INSERT INTO "schema_version" VALUES(8,5);
CREATE TABLE series (
  id INTEGER NOT NULL PRIMARY KEY,
  key VARCHAR(32) NOT NULL UNIQUE,
  body TEXT NOT NULL
);
INSERT INTO "series" VALUES(1,'eb9104dfafff23ac464fbb1076686b9b','["fs","/scratch","used"]');
INSERT INTO "series" VALUES(2,'cb55a38ef8a9aa8f1e135919e455bef7','["fs", "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "used"]');
CREATE TABLE switches (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "switches" VALUES('40ca332f30dc9485e042321a1c9ac524','{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}');
INSERT INTO "switches" VALUES('c93a14d78fce0d0598318cdb43352fc8','{"since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "seconds": null, "why": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "by": "alice"}');
CREATE TABLE transitions (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  alert VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO "transitions" VALUES(1,'7a619c229a0688aa9dc61d128ef1b64f','dfe39494505d90ecd238c41445c8ab1d',1800000000000000,'{"id":"transition-1","alert":"alert-/scratch","key":{"cluster":"h100","check":"fs","subject":"/scratch"},"kind":"fs","reason":"firing","status":"critical","severity":"critical","summary":"number 1","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"incident":""}');
INSERT INTO "transitions" VALUES(2,'aa6f4ade7303b1e16a8447d158ffe623','9e5dc78f2c691616b45109d394381bf9',1800000000000000,'{"id": "transition-2", "alert": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "key": {"cluster": "h100", "check": "fs", "subject": "/scratch"}, "kind": "fs", "reason": "firing", "status": "critical", "severity": "critical", "summary": "number 2", "at": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "incident": ""}');
CREATE TABLE unreadable (
  seq INTEGER NOT NULL PRIMARY KEY,
  noun VARCHAR(32) NOT NULL,
  key VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX transitions_alert ON transitions (alert);
CREATE INDEX transitions_at ON transitions (at);
CREATE INDEX outbox_alert ON outbox (alert);
CREATE INDEX outbox_done ON outbox (done, seq);
CREATE INDEX moments_at ON moments (at);
CREATE INDEX actions_target ON actions (target);
CREATE INDEX actions_tried ON actions (tried, seq);
CREATE INDEX actions_unresolved ON actions (unresolved);
CREATE INDEX readings_departure ON readings (departure, seq);
CREATE INDEX readings_node ON readings (node, seq);
CREATE INDEX gpus_node ON gpus (node);
CREATE INDEX gpu_stays_gpu ON gpu_stays (gpu, seq);
CREATE INDEX gpu_events_at ON gpu_events (at);
CREATE INDEX gpu_events_gpu ON gpu_events (gpu, at);
CREATE INDEX run_ledger_ended ON run_ledger (ended);
COMMIT;
