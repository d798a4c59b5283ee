package packet

import (
	"strings"
	"unicode/utf8"
)

// ValidateUTF8 checks that b is a valid UTF-8 Encoded String: well-formed, without
// U+0000, at most 65,535 bytes. The error is an *InvalidError. [MQTT5 1.5.4]
func ValidateUTF8(b []byte) error {
	rule := utf8Rule(b)
	if len(b) > maxString {
		rule = "is longer than 65535 bytes"
	}
	return textError("string", rule)
}

// ValidateTopicName checks that s is a valid topic to publish to: not empty, at most
// 65,535 bytes of UTF-8, without U+0000, without wildcards, and without the control
// characters and non-characters that SHOULD NOT be sent. The error is an *InvalidError.
// [MQTT5 4.7.3]
func ValidateTopicName(s string) error {
	return textError("topic name", topicNameRule(viewBytes(s)))
}

// ValidateTopicFilter checks that s is a valid filter to subscribe to. If it starts with
// "$share/", it must have the form $share/{ShareName}/{filter}. The error is an
// *InvalidError. [MQTT5 4.7.1, 4.8.2]
func ValidateTopicFilter(s string) error {
	return textError("topic filter", topicFilterRule(s, V5))
}

func textError(field, rule string) error {
	if rule == "" {
		return nil
	}
	return &InvalidError{Field: field, Rule: rule}
}

// topicNameRule returns the rule that topic name b breaks, or "".
func topicNameRule(b []byte) string {
	ascii, special := scanText(b)
	switch {
	// [MQTT-4.7.3-1]
	case len(b) == 0:
		return "must not be empty [MQTT-4.7.3-1]"
	// [MQTT-4.7.3-3]
	case len(b) > maxString:
		return "is longer than 65535 bytes [MQTT-4.7.3-3]"
	// [MQTT-4.7.3-2]
	case special && hasByte(b, 0):
		return "contains U+0000 [MQTT-4.7.3-2]"
	// [MQTT-3.3.2-2, MQTT-4.7.0-1], [MQTT-4.7.1-1] of 3.1.1
	case special && (hasByte(b, '+') || hasByte(b, '#')):
		return ruleWildcard
	// [MQTT-1.5.4-1, MQTT-3.3.2-1]
	case !ascii && !utf8.Valid(b):
		return "is not well-formed UTF-8 [MQTT-1.5.4-1]"
	case special || !ascii:
		return nameRule(b)
	}
	return ""
}

// topicFilterRule returns the rule that filter s breaks in version v, or "". Only MQTT 5
// has shared subscriptions: in 3.x "$share" is a level like any other.
func topicFilterRule(s string, v Version) string {
	rule := utf8Rule(viewBytes(s))
	if rule == "" {
		rule = nameRule(viewBytes(s))
	}
	switch {
	// [MQTT-4.7.3-1]
	case s == "":
		return "must not be empty [MQTT-4.7.3-1]"
	// [MQTT-4.7.3-3]
	case len(s) > maxString:
		return "is longer than 65535 bytes [MQTT-4.7.3-3]"
	case rule != "":
		return rule
	}
	if v == V5 && strings.HasPrefix(s, sharePrefix) {
		return sharedFilterRule(s[len(sharePrefix):])
	}
	return wildcardRule(s)
}

const (
	sharePrefix  = "$share/"
	ruleWildcard = "must not contain a wildcard, + or # [MQTT-3.3.2-2]"
)

// sharedFilterRule returns the rule that s, {ShareName}/{filter}, breaks, or "".
func sharedFilterRule(s string) string {
	group, rest, ok := strings.Cut(s, "/")
	switch {
	// [MQTT-4.8.2-1]
	case group == "" || strings.ContainsAny(group, "+#"):
		return "must have a ShareName without + and # after $share/ [MQTT-4.8.2-1]"
	// [MQTT-4.8.2-2]
	case !ok || rest == "":
		return "must have a topic filter after $share/ShareName/ [MQTT-4.8.2-2]"
	}
	return wildcardRule(rest)
}

// wildcardRule returns the rule that a + or # in filter s breaks, or "".
func wildcardRule(s string) string {
	for level, rest, more := "", s, true; more; {
		level, rest, more = strings.Cut(rest, "/")
		switch {
		// [MQTT-4.7.1-1], [MQTT-4.7.1-2] of 3.1.1
		case strings.Contains(level, "#") && (level != "#" || more):
			return "must have # as a whole level and last [MQTT-4.7.1-1]"
		// [MQTT-4.7.1-2], [MQTT-4.7.1-3] of 3.1.1
		case strings.Contains(level, "+") && level != "+":
			return "must have + as a whole level [MQTT-4.7.1-2]"
		}
	}
	return ""
}

// SplitShared splits the filter of a shared subscription: for "$share/group/a/+" it
// returns "group", "a/+" and true. For any other filter ok is false. [MQTT5 4.8.2]
func SplitShared(filter string) (group, rest string, ok bool) {
	tail, shared := strings.CutPrefix(filter, sharePrefix)
	if !shared || sharedFilterRule(tail) != "" {
		return "", "", false
	}
	return strings.Cut(tail, "/")
}

// MatchTopic reports whether filter matches topic; both must be valid. A filter that
// starts with a wildcard does not match a topic that starts with $. The filter of a
// shared subscription must be split first, see [SplitShared]. [MQTT5 4.7]
func MatchTopic(filter, topic string) bool {
	// [MQTT-4.7.2-1]
	if strings.HasPrefix(topic, "$") && !strings.HasPrefix(filter, "$") {
		return false
	}
	at := 0
	for i, c := range []byte(filter) {
		switch {
		case c == '#':
			return true
		case c == '+':
			for at < len(topic) && topic[at] != '/' {
				at++
			}
		case at < len(topic) && topic[at] == c:
			at++
		default:
			// "sport/#" also matches the parent level "sport".
			return at == len(topic) && filter[i:] == "/#"
		}
	}
	return at == len(topic)
}
