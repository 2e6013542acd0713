CREATE TABLE public.actions (
    seq bigint NOT NULL,
    id character varying(32) NOT NULL,
    target character varying(32) NOT NULL,
    tried bigint NOT NULL,
    unresolved bigint NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.actions_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.actions_seq_seq OWNED BY public.actions.seq;
CREATE TABLE public.alerts (
    key character varying(32) NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.gpu_events (
    seq bigint NOT NULL,
    id character varying(32) NOT NULL,
    gpu character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.gpu_events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.gpu_events_seq_seq OWNED BY public.gpu_events.seq;
CREATE TABLE public.gpu_stays (
    seq bigint NOT NULL,
    gpu character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.gpu_stays_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.gpu_stays_seq_seq OWNED BY public.gpu_stays.seq;
CREATE TABLE public.gpus (
    key character varying(32) NOT NULL,
    node character varying(32) NOT NULL,
    seen bigint NOT NULL,
    heat double precision NOT NULL,
    recipe character varying(32) NOT NULL,
    marked bigint NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.leader (
    id integer NOT NULL,
    token bigint NOT NULL,
    seq bigint NOT NULL,
    expires bigint NOT NULL,
    body text NOT NULL,
    thinned bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.memory (
    key character varying(32) NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.moments (
    id bigint NOT NULL,
    key character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.moments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.moments_id_seq OWNED BY public.moments.id;
CREATE TABLE public.orders (
    key character varying(32) NOT NULL,
    ends bigint NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.outbox (
    seq bigint NOT NULL,
    alert character varying(32) NOT NULL,
    done bigint NOT NULL,
    outcome text NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.readings (
    seq bigint NOT NULL,
    node character varying(32) NOT NULL,
    at bigint NOT NULL,
    departure bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.readings_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.readings_seq_seq OWNED BY public.readings.seq;
CREATE TABLE public.recent_passes (
    source character varying(32) NOT NULL,
    base bigint NOT NULL,
    key character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.recent_samples (
    place bigint NOT NULL,
    value double precision NOT NULL
);
CREATE TABLE public.runs (
    key character varying(32) NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.samples (
    series bigint NOT NULL,
    moment bigint NOT NULL,
    value double precision NOT NULL
);
CREATE TABLE public.schema_version (
    version bigint NOT NULL,
    oldest bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.series (
    id bigint NOT NULL,
    key character varying(32) NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.series_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.series_id_seq OWNED BY public.series.id;
CREATE TABLE public.switches (
    key character varying(32) NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.transitions (
    seq bigint NOT NULL,
    id character varying(32) NOT NULL,
    alert character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.transitions_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.transitions_seq_seq OWNED BY public.transitions.seq;
CREATE TABLE public.unreadable (
    seq bigint NOT NULL,
    noun character varying(32) NOT NULL,
    key character varying(32) NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE public.unreadable_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.unreadable_seq_seq OWNED BY public.unreadable.seq;
ALTER TABLE ONLY public.actions ALTER COLUMN seq SET DEFAULT nextval('public.actions_seq_seq'::regclass);
ALTER TABLE ONLY public.gpu_events ALTER COLUMN seq SET DEFAULT nextval('public.gpu_events_seq_seq'::regclass);
ALTER TABLE ONLY public.gpu_stays ALTER COLUMN seq SET DEFAULT nextval('public.gpu_stays_seq_seq'::regclass);
ALTER TABLE ONLY public.moments ALTER COLUMN id SET DEFAULT nextval('public.moments_id_seq'::regclass);
ALTER TABLE ONLY public.readings ALTER COLUMN seq SET DEFAULT nextval('public.readings_seq_seq'::regclass);
ALTER TABLE ONLY public.series ALTER COLUMN id SET DEFAULT nextval('public.series_id_seq'::regclass);
ALTER TABLE ONLY public.transitions ALTER COLUMN seq SET DEFAULT nextval('public.transitions_seq_seq'::regclass);
ALTER TABLE ONLY public.unreadable ALTER COLUMN seq SET DEFAULT nextval('public.unreadable_seq_seq'::regclass);
INSERT INTO public.actions VALUES (1, '5c3d29a9af8d97bbf945ad3d9c346471', 'bc3eee45898bd828bfffff797dda2ef2', 1, 1, 1800000000000000, '{"id":"one","action":"drain","target":"n1","reason":"bad","by":"test","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"outcome":"intended","params":{},"evidence":{},"commands":[],"rule":"","why":"","detail":"","ended":null,"checked":[],"mark":"","forced":false,"subject":"","log":""}');
INSERT INTO public.alerts VALUES ('5f1fe74d1de0cb64544e573550de4431', '{"key": {"cluster": "h100", "check": "fs", "subject": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00"}, "id": "alert-NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "kind": "fs", "status": "critical", "summary": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "last": {"wall": 1800000001000000, "boot": "boot-1", "mono": 1001000000}, "firing": false, "severity": "warning", "fired": null, "clear_since": null, "rose": null, "began": null, "runs": 1, "count": 0, "details": "", "commands": [], "labels": {}, "values": {}, "runbook": "", "told": {}, "on_hold": null, "changes": [], "flapping": false, "over": false, "acked": false, "incident": "", "freed": null, "tell_once": false, "guidance": {}}');
INSERT INTO public.alerts VALUES ('a79cd3133158ecec6b24e64796a1f44e', '{"key":{"cluster":"h100","check":"fs","subject":"/b"},"id":"alert-/b","kind":"fs","status":"critical","summary":"full","since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"last":{"wall":1800000001000000,"boot":"boot-1","mono":1001000000},"firing":false,"severity":"warning","fired":null,"clear_since":null,"rose":null,"began":null,"runs":1,"count":0,"details":"","commands":[],"labels":{},"values":{},"runbook":"","told":{},"on_hold":null,"changes":[],"flapping":false,"over":false,"acked":false,"incident":"","freed":null,"tell_once":false,"guidance":{}}');
INSERT INTO public.gpu_events VALUES (1, 'ad5686e89430b5a91a6afd20d7599a42', 'cb933450c3081b33cdb1f71040471d67', 1800000061000000, '{"id": "e1", "subject": "GPU-a", "what": "xid 79", "at": {"wall": 1800000061000000, "boot": "boot-1", "mono": 1061000000}, "node": "n2", "text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "count": 1, "by": ""}');
INSERT INTO public.gpu_events VALUES (2, 'b7b07b545dd3908592cb26d9237362b5', 'ad5253779bf665e7e12fb65d0c747ec6', 1800000062000000, '{"id": "GPU-b marked lemon 1800000062000000", "subject": "GPU-b", "what": "marked lemon", "at": {"wall": 1800000062000000, "boot": "boot-1", "mono": 1062000000}, "node": "n1", "text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "count": 1, "by": "alice"}');
INSERT INTO public.gpu_stays VALUES (2, 'ad5253779bf665e7e12fb65d0c747ec6', 1800000000000000, '{"node":"n1","slot":"1","began":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"ended":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}}');
INSERT INTO public.gpu_stays VALUES (1, 'cb933450c3081b33cdb1f71040471d67', 1800000000000000, '{"node":"n1","slot":"0","began":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"ended":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}}');
INSERT INTO public.gpu_stays VALUES (3, 'cb933450c3081b33cdb1f71040471d67', 1800000060000000, '{"node":"n2","slot":"0","began":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000},"ended":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000}}');
INSERT INTO public.gpus VALUES ('cb933450c3081b33cdb1f71040471d67', '52bcf867145e8fe5582784e77f74481f', 1800000060000000, 2, '0925d15c274b04b69192f513c6507a1c', 0, '{"subject":"GPU-a","serial":"","model":"","node":"n2","slot":"0","first":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"seen":{"wall":1800000060000000,"boot":"boot-1","mono":1060000000},"mark":"","reason":"","by":"","heat":2.0,"warmed":{"wall":1800000061000000,"boot":"boot-1","mono":1061000000},"recipe":"[2419200.0,[]]","cleared":0,"outages":[]}');
INSERT INTO public.gpus VALUES ('ad5253779bf665e7e12fb65d0c747ec6', 'bc3eee45898bd828bfffff797dda2ef2', 1800000000000000, 0, '', 1, '{"subject": "GPU-b", "serial": "", "model": "", "node": "n1", "slot": "1", "first": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "seen": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "mark": "lemon", "reason": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "by": "alice", "heat": 0.0, "warmed": null, "recipe": "", "cleared": 0, "outages": []}');
INSERT INTO public.leader VALUES (1, 1, 3, 0, '{"holder":"","since":0}', 0);
INSERT INTO public.memory VALUES ('8b79bd5881da97c7a4dc87eb1a99a2e2', '{"check": "fs", "memory": {"text": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "number": 1.5}}');
INSERT INTO public.moments VALUES (1, '5f74448397c4bd5871e7215ef2933fba', 1800000000000000, '{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}');
INSERT INTO public.orders VALUES ('cfff37b063f07ea3383537739e34b63d', 1800000100000000, '{"silence": {"id": "s1", "match": {"severity": null, "status": null, "check": ["fs"], "kind": null, "cluster": null, "subject": null, "node": null, "user": null, "partition": null, "job": null, "labels": {}, "matchers": []}, "starts": 1, "ends": 1800000100000000, "who": "alice", "how": "", "reason": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "nodes": null, "alerts": null}, "ack": null, "remark": null}');
INSERT INTO public.orders VALUES ('4e282708111d6cd386f81f82a4a23060', 1807776001000000, '{"silence":null,"ack":{"alert":"alert-/b","at":{"wall":1800000001000000,"boot":"boot-1","mono":1001000000},"who":"bob","how":"","note":""},"remark":null}');
INSERT INTO public.outbox VALUES (2, 'dfe39494505d90ecd238c41445c8ab1d', 0, '', '{"seq":0,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"waits","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
INSERT INTO public.outbox VALUES (1, 'dfe39494505d90ecd238c41445c8ab1d', 1800000005000000, '{"at":{"wall":1800000005000000,"boot":"boot-1","mono":1005000000},"sent":true,"text":"250 ok","message":1}', '{"seq":1,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"sent","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":false,"error":""}');
INSERT INTO public.outbox VALUES (3, 'dfe39494505d90ecd238c41445c8ab1d', 1800000006000000, '{"at":{"wall":1800000006000000,"boot":"boot-1","mono":1006000000},"sent":false,"text":"no such user","message":0}', '{"seq":3,"channel":"mail","notification":{"at":"2027-01-15T08:00:00+00:00","cluster":"h100","check":"fs","kind":"fs","subject":"/scratch","severity":"critical","status":"critical","reason":"firing","summary":"given up","since":"2027-01-15T08:00:00+00:00","key":"h100/fs/scratch","alert":"alert-/scratch","details":"","commands":[],"labels":{},"values":{},"runbook":"","note":"","dry_run":false,"links":{},"page":"","incident":"","guidance":{}},"created":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"bundle":{"route":"","incident":"","first_look":false,"owner":null},"hold":0.0,"interval":0.0,"attempts":0,"tried":null,"wait":0.0,"permanent":true,"error":"no such user"}');
INSERT INTO public.readings VALUES (1, 'bc3eee45898bd828bfffff797dda2ef2', 1800000000000000, 0, '{"node":"n1","state":"IDLE+DRAIN","reason":"bad dimm, RMA 4711","user":"root","reason_time":1700000000,"out":true,"seen":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"left":null,"returned":null}');
INSERT INTO public.recent_passes VALUES ('8b79bd5881da97c7a4dc87eb1a99a2e2', 4294967296, '5c80afa21332a2f1b5a4e8b67136ba00', 1800000001000000, '{"wall":1800000001000000,"boot":"boot-1","mono":1001000000}');
INSERT INTO public.recent_samples VALUES (4294967297, 'Infinity');
INSERT INTO public.runs VALUES ('8b79bd5881da97c7a4dc87eb1a99a2e2', '{"check":"fs","kind":"fs","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"status":"ok","summary":"fine","duration":0.25,"after":0.0,"blind":false}');
INSERT INTO public.samples VALUES (1, 1, 1);
INSERT INTO public.samples VALUES (2, 1, 2);
INSERT INTO public.schema_version VALUES (7, 5);
INSERT INTO public.series VALUES (1, 'eb9104dfafff23ac464fbb1076686b9b', '["fs","/scratch","used"]');
INSERT INTO public.series VALUES (2, 'cb55a38ef8a9aa8f1e135919e455bef7', '["fs", "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "used"]');
INSERT INTO public.switches VALUES ('40ca332f30dc9485e042321a1c9ac524', '{"wall":1800000000000000,"boot":"boot-1","mono":1000000000}');
INSERT INTO public.switches VALUES ('c93a14d78fce0d0598318cdb43352fc8', '{"since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "seconds": null, "why": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "by": "alice"}');
INSERT INTO public.transitions VALUES (1, '7a619c229a0688aa9dc61d128ef1b64f', 'dfe39494505d90ecd238c41445c8ab1d', 1800000000000000, '{"id":"transition-1","alert":"alert-/scratch","key":{"cluster":"h100","check":"fs","subject":"/scratch"},"kind":"fs","reason":"firing","status":"critical","severity":"critical","summary":"number 1","at":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"since":{"wall":1800000000000000,"boot":"boot-1","mono":1000000000},"incident":""}');
INSERT INTO public.transitions VALUES (2, 'aa6f4ade7303b1e16a8447d158ffe623', '9e5dc78f2c691616b45109d394381bf9', 1800000000000000, '{"id": "transition-2", "alert": "NUL \u0000, lone \ud800, ''quote'', %s :key \u00fc\ud83d\ude00", "key": {"cluster": "h100", "check": "fs", "subject": "/scratch"}, "kind": "fs", "reason": "firing", "status": "critical", "severity": "critical", "summary": "number 2", "at": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "since": {"wall": 1800000000000000, "boot": "boot-1", "mono": 1000000000}, "incident": ""}');
SELECT pg_catalog.setval('public.actions_seq_seq', 1, true);
SELECT pg_catalog.setval('public.gpu_events_seq_seq', 2, true);
SELECT pg_catalog.setval('public.gpu_stays_seq_seq', 3, true);
SELECT pg_catalog.setval('public.moments_id_seq', 1, true);
SELECT pg_catalog.setval('public.readings_seq_seq', 1, true);
SELECT pg_catalog.setval('public.series_id_seq', 3, true);
SELECT pg_catalog.setval('public.transitions_seq_seq', 2, true);
SELECT pg_catalog.setval('public.unreadable_seq_seq', 1, false);
ALTER TABLE ONLY public.actions
    ADD CONSTRAINT actions_id_key UNIQUE (id);
ALTER TABLE ONLY public.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.gpu_events
    ADD CONSTRAINT gpu_events_id_key UNIQUE (id);
ALTER TABLE ONLY public.gpu_events
    ADD CONSTRAINT gpu_events_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.gpu_stays
    ADD CONSTRAINT gpu_stays_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.gpus
    ADD CONSTRAINT gpus_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.leader
    ADD CONSTRAINT leader_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory
    ADD CONSTRAINT memory_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.moments
    ADD CONSTRAINT moments_key_key UNIQUE (key);
ALTER TABLE ONLY public.moments
    ADD CONSTRAINT moments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.readings
    ADD CONSTRAINT readings_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.recent_passes
    ADD CONSTRAINT recent_passes_pkey PRIMARY KEY (source, base);
ALTER TABLE ONLY public.recent_samples
    ADD CONSTRAINT recent_samples_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.samples
    ADD CONSTRAINT samples_pkey PRIMARY KEY (series, moment);
ALTER TABLE ONLY public.series
    ADD CONSTRAINT series_key_key UNIQUE (key);
ALTER TABLE ONLY public.series
    ADD CONSTRAINT series_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.switches
    ADD CONSTRAINT switches_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.transitions
    ADD CONSTRAINT transitions_id_key UNIQUE (id);
ALTER TABLE ONLY public.transitions
    ADD CONSTRAINT transitions_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.unreadable
    ADD CONSTRAINT unreadable_pkey PRIMARY KEY (seq);
CREATE INDEX actions_target ON public.actions USING btree (target);
CREATE INDEX actions_tried ON public.actions USING btree (tried, seq);
CREATE INDEX actions_unresolved ON public.actions USING btree (unresolved);
CREATE INDEX gpu_events_at ON public.gpu_events USING btree (at);
CREATE INDEX gpu_events_gpu ON public.gpu_events USING btree (gpu, at);
CREATE INDEX gpu_stays_gpu ON public.gpu_stays USING btree (gpu, seq);
CREATE INDEX gpus_node ON public.gpus USING btree (node);
CREATE INDEX moments_at ON public.moments USING btree (at);
CREATE INDEX outbox_alert ON public.outbox USING btree (alert);
CREATE INDEX outbox_done ON public.outbox USING btree (done, seq);
CREATE INDEX readings_departure ON public.readings USING btree (departure, seq);
CREATE INDEX readings_node ON public.readings USING btree (node, seq);
CREATE INDEX transitions_alert ON public.transitions USING btree (alert);
CREATE INDEX transitions_at ON public.transitions USING btree (at);
