package packet

const (
	ruleSession    = "Session Present must be 0 with a code other than 0 [MQTT-3.2.2-6]"
	ruleReturnCode = "return code is above 5"
)

// Append appends c as one control packet of version v; the properties are left
// out in 3.x, where Code is a return code of 0 to 5, and Session Present in 3.1.
// On an error, an *InvalidError, dst is returned as it was.
func (c *Connack) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, CONNACK)
	flags := byte(0)
	if c.SessionPresent && v != V31 {
		flags = 1
	}
	w.byte(flags)
	switch {
	// [MQTT-3.2.2-6]
	case c.SessionPresent && c.Code != ReasonSuccess:
		w.fail("Session Present", ruleSession)
	case v == V5:
		w.reason(c.Code)
		w.properties(CONNACK, &c.Properties)
	case c.Code > 5:
		w.fail("return code", ruleReturnCode)
	default:
		w.byte(byte(c.Code))
	}
	return w.end()
}

// Decode reads f, a CONNACK of version v, into c. A server that does not know
// version 5 answers with two bytes of 3.1.1, which is an error here. The error
// is a *MalformedError.
func (c *Connack) Decode(f Frame, v Version) error {
	*c = Connack{}
	r := open(f, CONNACK, v)
	flags := r.byte("acknowledge flags")
	switch {
	case v == V31: // which does not use this byte [MQTT 3.1 section 3.2]
		flags = 0
	// [MQTT-3.2.2-1]
	case flags > 1:
		r.failAt(0, ReasonMalformedPacket, "reserved acknowledge flags must be 0 [MQTT-3.2.2-1]")
	}
	c.SessionPresent = flags == 1
	if v == V5 {
		c.Code = r.reason()
		r.properties(CONNACK, &c.Properties)
	} else if c.Code = ReasonCode(r.byte("return code")); c.Code > 5 {
		r.failAt(1, ReasonMalformedPacket, ruleReturnCode)
	}
	// [MQTT-3.2.2-6]
	if c.SessionPresent && c.Code != ReasonSuccess {
		r.failAt(0, ReasonProtocolError, ruleSession)
	}
	return r.close()
}
