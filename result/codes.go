package result

// Codes of warnings and findings. They are stable: users filter by them.

// Codes of the warnings that Analyze gives.
const (
	CodeZeroMeasurement  = "zero-measurement"
	CodeMinIterationTime = "min-iteration-time"
	CodeStalled          = "stalled-iteration"
	CodeOutliers         = "outliers"
	CodeMultimodal       = "multimodal"
	CodeGeneratorLimited = "generator-limited"
	// CodeClosedLoopStall warns of a closed loop whose percentiles know less of a
	// stall than clients that do not wait for each other would.
	CodeClosedLoopStall = "closed-loop-stall"
	CodeLatencyClamped  = "latency-clamped"
	CodeLedger          = "ledger"
	CodeClientsMissing  = "clients-missing"
)

// Codes of the warnings that a run gives on a case.
const (
	CodeGrantedQoS           = "granted-qos"            // the broker granted a lower QoS than was asked for
	CodeFilterMatchesNothing = "filter-matches-nothing" // the subscribers' filter matches no topic that is published to
	CodeMQTT5Only            = "mqtt5-only"             // a case of an earlier version goes without what only MQTT 5 has
	CodeProperties           = "properties"             // the broker dropped or changed properties of messages
	CodeTopicAlias           = "topic-alias"            // the broker allows fewer topic aliases than were asked for
	CodeReferred             = "referred"               // brokers referred clients to other servers
	CodeReconnected          = "reconnected"            // connections were lost and made again
	CodeSessionNotKept       = "session-not-kept"       // the broker lost a session that it was asked to keep
	CodeRateNotKept          = "rate-not-kept"          // an open loop did not keep its rate
	CodeSlowClients          = "slow-clients"           // some clients are much slower than the median client
	CodePublishersStalled    = "publishers-stalled"     // some publishers made no progress while others did
	CodeUntimedDeliveries    = "untimed-deliveries"     // some deliveries are in no latency
	CodeNearCeiling          = "near-ceiling"           // the case came near to what the tool itself reaches here
)

// Codes of the warnings about a scenario, given before the run.
const (
	CodeDollarTopic      = "dollar-topic"       // the topic begins with $
	CodeStamp            = "stamp"              // the stamp replaces the first bytes of a payload
	CodeInsecure         = "insecure"           // the server's certificate is not verified
	CodePasswordFileMode = "password-file-mode" // other users can read the password file
)

// Codes of the warnings that Merge gives on a case.
const (
	CodeMerged     = "merged"      // what the case was merged from
	CodeMergedPart = "merged-part" // not every report has the case
	CodeGateFailed = "gate-failed" // a gate holds for all runs together, and failed in one of them
)

// Codes of the warnings of Compare.
const (
	CodeSameFile    = "same-file"
	CodeSwapped     = "swapped"
	CodePartialRun  = "partial-run"
	CodeUnlike      = "unlike"
	CodeUnknownHost = "unknown-environment"
	CodeNoMatch     = "no-match"
	CodeOneLaunch   = "one-launch"
	CodeNoAccount   = "no-delivery-account"
)

// Codes of the findings of Audit, besides those of Analyze.
const (
	CodeNDiffers   = "n-differs"
	CodeErrorRatio = "error-stddev"
	CodeReqPerSec  = "req-per-sec"
	CodePrecision  = "precision"
	CodeUnstable   = "unstable"
	CodeSummary    = "summary"
	CodeHistogram  = "histogram"
	CodeCaseID     = "case-id"
	CodeGate       = "gate"
	CodeOperations = "operations"
	CodeClients    = "clients"
	CodeTimeline   = "timeline"
	CodeDelivery   = "delivery" // the case broke the delivery contract
)
