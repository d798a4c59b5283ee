package result

import "time"

// Schema names the report file format that this package writes and reads.
const Schema = "mqttload.report/1"

// Report is one report file. A field whose value does not exist is null in
// JSON, never NaN or 0; all times are integers in nanoseconds.
type Report struct {
	Schema       string       `json:"schema"`
	Tool         Tool         `json:"tool"`
	Run          Run          `json:"run"`
	Environment  Environment  `json:"environment"`
	Target       Target       `json:"target"`
	Scenario     any          `json:"scenario"` // the effective scenario, secrets masked; a json.RawMessage if it was read
	ScenarioHash string       `json:"scenario_hash"`
	Cases        []Case       `json:"cases"`
	Gates        []GateResult `json:"gates"`
	// Calibration is set in reports of calibrate.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Tool says which build made the report.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Status of a run.
const (
	StatusComplete = "complete"
	StatusPartial  = "partial"
	StatusFailed   = "failed"
)

// Run is about the run as a whole.
type Run struct {
	ID       string     `json:"id"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Status   string     `json:"status"`
	Seed     uint64     `json:"seed"`
	Command  []string   `json:"command"` // secrets masked
}

// Environment is the machine of the load generator.
type Environment struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	NoFile     uint64 `json:"nofile"`
}

// Target is the broker under test.
type Target struct {
	URL      string   `json:"url"` // without user information
	Embedded bool     `json:"embedded"`
	TLS      *TLS     `json:"tls"`
	Connack  *Connack `json:"connack"`
	// ReferredBy are the brokers whose Server References led the first client to URL,
	// the configured one first; absent if it was not referred.
	ReferredBy []string `json:"referred_by,omitempty"`
}

// TLS is what the first connection negotiated.
type TLS struct {
	Version  string `json:"version"` // "TLS 1.3"
	Cipher   string `json:"cipher"`
	Curve    string `json:"curve"`
	Resumed  bool   `json:"resumed"`
	Insecure bool   `json:"insecure"` // the server certificate was not verified
}

// Connack is what the broker's CONNACK allows; null if the broker did not say.
type Connack struct {
	SessionPresent    bool    `json:"session_present"`
	ReceiveMaximum    *uint16 `json:"receive_maximum"`
	MaximumQoS        *byte   `json:"maximum_qos"`
	MaximumPacketSize *uint32 `json:"maximum_packet_size"`
	ServerKeepAlive   *uint16 `json:"server_keep_alive"`
	TopicAliasMaximum *uint16 `json:"topic_alias_maximum"`
	RetainAvailable   *bool   `json:"retain_available"`
	AssignedClientID  *string `json:"assigned_client_id"`
	// ResponseInformation is set if it was requested and the broker sent it.
	ResponseInformation *string `json:"response_information,omitempty"`
}

// Param is one axis value of a case. The ordered list of them is the case's
// key: id, table columns, join, selector and sub-benchmark name come from it.
type Param struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Case is the result of one case: one row of the table.
type Case struct {
	ID     string  `json:"id"` // "qos=1/payload=8192/protocol=5/transport=tls"
	Params []Param `json:"params"`
	Kind   Kind    `json:"kind"`
	// QoS is that of the messages and subscriptions, nil if there are none.
	QoS *byte `json:"qos"`
	// PersistentSessions says that clients asked the broker to keep their
	// sessions while they are disconnected.
	PersistentSessions bool `json:"persistent_sessions"`

	Iterations []Iteration `json:"iterations"`
	Summary    Summary     `json:"summary"`
	Latency    Latency     `json:"latency"`
	Delivery   Delivery    `json:"delivery"`
	Clients    Clients     `json:"clients"`
	Errors     []Error     `json:"errors"`
	Warnings   []Warning   `json:"warnings"`
	Bottleneck *Bottleneck `json:"bottleneck"`
	// Offered is set for open loops: what the schedule asked for, and what was sent.
	Offered *Offered `json:"offered,omitempty"`
	// Losses is set if deliveries were lost.
	Losses   *Losses `json:"losses,omitempty"`
	CPU      CPU     `json:"cpu"`
	IO       IO      `json:"io"`
	Timeline []Tick  `json:"timeline"`
	// Window is the in-flight window per publisher that was in force:
	// min(asked, Receive Maximum); WindowAsked is what the scenario asked for, 0 if it
	// was not recorded. OperationsPerMessage is 1, or 2 if a publish and a receive
	// count separately.
	Window               int `json:"window"`
	WindowAsked          int `json:"window_asked"`
	OperationsPerMessage int `json:"operations_per_message"`
	// Aliases is set if publishers asked for topic aliases.
	Aliases *Aliases `json:"topic_aliases,omitempty"`
	// Request says what a request is, if it is not a message published and delivered.
	Request string `json:"request,omitempty"`
	// Ceiling is set if a calibration of the machine was available.
	Ceiling *Ceiling `json:"ceiling,omitempty"`
}

// Aliases is how many topic aliases each publisher asked for, and how many of them the
// broker allows: min(asked, Topic Alias Maximum).
type Aliases struct {
	Asked   int `json:"asked"`
	Granted int `json:"granted"`
}

// Stages of an iteration.
const (
	StageWarmup = "warmup"
	StageActual = "actual"
)

// Iteration is one timed stretch of work: first publish to last delivery or
// acknowledgement. ElapsedNS / Operations is one sample of the summary.
type Iteration struct {
	Launch     int    `json:"launch"` // from 1
	Stage      string `json:"stage"`
	Index      int    `json:"index"` // from 1 within launch and stage
	StartNS    int64  `json:"start_ns"`
	ElapsedNS  int64  `json:"elapsed_ns"`
	Operations int64  `json:"operations"`
	Sent       int64  `json:"sent"`
	Acked      int64  `json:"acked"`
	Received   int64  `json:"received"`
	// Requests counts messages that reached all their receivers or, if they have none,
	// were acknowledged (QoS 0: written). It is 0 in reports of versions that had one
	// subscriber per publisher: use Received there.
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"` // payload bytes received
	// Lost counts deliveries of this iteration that had not arrived when it ended.
	// Stalled is set if it was given up without progress.
	Lost    int64 `json:"lost"`
	Stalled bool  `json:"stalled"`
	// Run is the id of the run that the iteration comes from, in merged reports.
	Run string `json:"run,omitempty"`
}

// Summary holds statistics over the actual iterations of
// ElapsedNS/Operations: inverse throughput, not latency.
type Summary struct {
	N              int      `json:"n"`
	MeanNS         *float64 `json:"mean_ns"`
	ErrorNS        *float64 `json:"error_ns"` // half of the 99.9 % confidence interval
	StdDevNS       *float64 `json:"stddev_ns"`
	MedianNS       *float64 `json:"median_ns"`
	MinNS          *float64 `json:"min_ns"`
	MaxNS          *float64 `json:"max_ns"`
	ReqPerSec      *float64 `json:"req_per_sec"` // 1e9 / MeanNS
	MessagesPerSec *float64 `json:"messages_per_sec"`
	BytesPerSec    *float64 `json:"bytes_per_sec"`
	// DeliveriesPerSec counts a message once for every receiver, MessagesPerSec only
	// once; nil in reports of earlier versions.
	DeliveriesPerSec *float64 `json:"deliveries_per_sec"`
}

// Latency holds a histogram for each part of a message's or connection's way; null if
// nothing was recorded.
type Latency struct {
	EndToEnd     *Histogram `json:"end_to_end"`
	Service      *Histogram `json:"service"`
	SendLag      *Histogram `json:"send_lag"`
	Ack          *Histogram `json:"ack"`     // PUBLISH to PUBACK (QoS 1) or PUBCOMP (QoS 2)
	Pubrec       *Histogram `json:"pubrec"`  // PUBLISH to PUBREC
	Connect      *Histogram `json:"connect"` // TCP
	TLSHandshake *Histogram `json:"tls_handshake"`
	Connack      *Histogram `json:"connack"`
	Subscribe    *Histogram `json:"subscribe"`
	DNS          *Histogram `json:"dns"` // of a name that was resolved, before connect
	// TLSResumed are the handshakes that resumed an earlier session; TLSHandshake has
	// the others. Nil in reports of earlier versions.
	TLSResumed *Histogram `json:"tls_resumed"`
	// Reconnect is the time from the loss of a connection to the CONNACK of the one
	// that replaced it.
	Reconnect *Histogram `json:"reconnect"`
	// Reauth are authentications on open connections, from the first AUTH to the one
	// that reports success. Nil in reports of earlier versions.
	Reauth *Histogram `json:"reauth"`
}

// Histogram is the summary of a latency histogram, and the whole of it: HDR is the
// V2-compressed HdrHistogram in base64.
type Histogram struct {
	Count   int64   `json:"count"`
	MinNS   int64   `json:"min_ns"`
	MeanNS  float64 `json:"mean_ns"`
	P50NS   int64   `json:"p50_ns"`
	P90NS   int64   `json:"p90_ns"`
	P99NS   int64   `json:"p99_ns"`
	P999NS  int64   `json:"p999_ns"`
	P9999NS int64   `json:"p9999_ns"`
	MaxNS   int64   `json:"max_ns"`
	// Clamped counts values that lay outside of the histogram's range and were
	// recorded at its edge: see Record.
	Clamped int64  `json:"clamped"`
	HDR     string `json:"hdr"`
}

// Delivery is the exact account of every message of the actual iterations:
// Scheduled = Sent + Unsent; Expected = Delivered + Lost;
// Received = Delivered + Duplicated. The other counts are in none of these sums.
type Delivery struct {
	Scheduled  int64 `json:"scheduled"`
	Sent       int64 `json:"sent"`
	Unsent     int64 `json:"unsent"`
	Acked      int64 `json:"acked"`
	Nacked     int64 `json:"nacked"` // rejected by the broker
	Expected   int64 `json:"expected"`
	Received   int64 `json:"received"`
	Delivered  int64 `json:"delivered"`
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	// Redelivered counts those of Duplicated that had their DUP flag set.
	Redelivered int64 `json:"redelivered"`
	Reordered   int64 `json:"reordered"`
	// Resent counts PUBLISH packets, with their DUP flag set, and PUBREL packets that
	// were sent again after a reconnect. Sent counts them once.
	Resent    int64 `json:"resent"`
	Corrupted int64 `json:"corrupted"` // counted as delivered: the stamp is readable, the content wrong
	Foreign   int64 `json:"foreign"`   // unexpected: not sent by this run
	Late      int64 `json:"late"`      // arrived after being counted as lost
	// CountsOnly is set if payloads are too short for a stamp: then messages are only
	// counted, and order, duplicates and content are not checked.
	CountsOnly bool `json:"counts_only"`
}

// Clients counts connections over all launches.
type Clients struct {
	Planned    int64 `json:"planned"`
	Connected  int64 `json:"connected"`
	Lost       int64 `json:"lost"`
	Reconnects int64 `json:"reconnects"`
}

// Warning is a fact that a reader of the numbers should know.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Bottleneck says what limited the case.
type Bottleneck struct {
	Kind   string `json:"kind"` // "window", "broker", "generator", "network", "target met"
	Detail string `json:"detail"`
}

// CPU is the load generator's own CPU time over the actual iterations.
type CPU struct {
	UserNS   int64 `json:"user_ns"`
	SystemNS int64 `json:"system_ns"`
}

// IO is what all clients of the case read and wrote over the actual
// iterations: calls and bytes on the wire, MQTT headers included and TLS not.
type IO struct {
	Reads        int64 `json:"reads"`
	Writes       int64 `json:"writes"`
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
}

// Tick is one point of the timeline, relative to the case's start.
type Tick struct {
	TNS      int64  `json:"t_ns"`
	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
	P99NS    *int64 `json:"p99_ns"`
	// Run is the id of the run that the tick comes from, in merged reports.
	Run string `json:"run,omitempty"`
}

// GateResult is one gate rule applied to one case. Value and Limit are in the
// unit of the metric: ns for times, percent if the rule asks for percent.
type GateResult struct {
	Rule   string   `json:"rule"`
	Case   string   `json:"case"` // "" if the rule's selector matched none
	Value  *float64 `json:"value"`
	Limit  float64  `json:"limit"`
	Passed bool     `json:"passed"`
	// Message says in words what was found, if the gate did not pass.
	Message string `json:"message,omitempty"`
}
