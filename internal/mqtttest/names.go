package mqtttest

import (
	"encoding/binary"
	"fmt"
)

// NameProbes are PUBLISH, wills, SUBSCRIBE and UNSUBSCRIBE with topic names and
// filters, valid and invalid by sections 4.7 and 4.8. v is the protocol level.
func NameProbes(v byte) (list []Probe) {
	for name, codes := range names(v) {
		topic := string(binary.BigEndian.AppendUint16(nil, uint16(len(name)))) + name
		list = append(list,
			Probe{fmt.Sprintf("topic name %q", name), frame(0x30, topic+empty(v)), codes},
			Probe{fmt.Sprintf("will topic %q", name), frame(0x10, connect(v)+empty(v)+topic+textMark), willCodes(name, codes)})
	}
	for name, codes := range filters(v) {
		filter := string(binary.BigEndian.AppendUint16(nil, uint16(len(name)))) + name
		list = append(list,
			Probe{fmt.Sprintf("subscribe to %q", name), frame(0x82, probeID+empty(v)+filter+"\x00"), codes},
			Probe{fmt.Sprintf("unsubscribe from %q", name), frame(0xa2, probeID+empty(v)+filter), codes})
	}
	return list
}

// empty is the property length of a packet without properties.
func empty(v byte) string {
	if v < 5 {
		return ""
	}
	return "\x00"
}

// connect is the start of a CONNECT with a will, up to the Will Properties.
func connect(v byte) string {
	return "\x00\x04MQTT" + string([]byte{v}) + "\x06\x00\x3c" + empty(v) + textMark
}

// willCodes: a will has no Topic Alias, so an empty name is malformed.
func willCodes(name string, codes []byte) []byte {
	if name == "" {
		return []byte{malformed}
	}
	return codes
}

func names(v byte) map[string][]byte {
	list := map[string][]byte{
		"": {protocol}, // 3.3.2.1: zero length and no Topic Alias
	}
	for _, good := range []string{"a", "/", "//", "a/", " ", "é", "$SYS/x", "\U0002a6d4", "\ufeffa", "$share/g/a"} {
		list[good] = nil
	}
	// [MQTT-3.3.2-1] [MQTT-3.3.2-2] [MQTT-4.7.0-1] [MQTT-4.7.3-2]
	for _, bad := range append(notText(), "#", "+", "a/+", "a/#", "a+b", "a#") {
		list[bad] = []byte{malformed}
	}
	return list
}

func filters(v byte) map[string][]byte {
	list := map[string][]byte{}
	good := []string{"a", "/", "#", "+", "+/+", "/#", "a/#", "a/+/b", " ", "é", "$SYS/#", "$share", "$shared/a"}
	// [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.7.3-2]
	bad := append(notText(), "", "a#", "#a", "#/a", "a/#/b", "##", "a+", "+a", "a/b+/c", "++")
	good = append(good, "$share/g/a", "$share/g/#", "$share/g//")
	// [MQTT-4.8.2-1] [MQTT-4.8.2-2]; a level like any other in 3.1.1
	if share := []string{"$share/", "$share/g", "$share/g/", "$share//a"}; v < 5 {
		good = append(good, share...)
	} else {
		bad = append(append(bad, share...), "$share/g+/a", "$share/+/a")
	}
	bad = append(bad, "$share/g#/a", "$share/#/a")
	for _, s := range good {
		list[s] = nil
	}
	for _, s := range bad {
		list[s] = []byte{malformed}
	}
	return list
}

// notText are invalid UTF-8 Encoded Strings. [MQTT-1.5.4-1] [MQTT-1.5.4-2]
func notText() []string {
	return []string{"\x00", "a\x00b", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "a\xc3"}
}
