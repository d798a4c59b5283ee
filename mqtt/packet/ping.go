package packet

// AppendPingreq appends a PINGREQ packet. [MQTT5 3.12]
func AppendPingreq(dst []byte) []byte { return append(dst, byte(PINGREQ)<<4, 0) }

// AppendPingresp appends a PINGRESP packet. [MQTT5 3.13]
func AppendPingresp(dst []byte) []byte { return append(dst, byte(PINGRESP)<<4, 0) }

// DecodePing checks a PINGREQ or PINGRESP packet of version v, which has no
// body. The error is a *MalformedError.
func DecodePing(f Frame, v Version) error {
	want := PINGREQ
	if f.Type() == PINGRESP {
		want = PINGRESP
	}
	r := open(f, want, v)
	return r.close()
}
