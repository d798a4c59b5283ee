package packet

const (
	ruleSession    = "Session Present must be 0 with a code other than 0 [MQTT-3.2.2-6]"
	ruleReturnCode = "return code is above 5"
)

// Append appends c, encoded for version v, to dst. In 3.x it leaves out the properties,
// and Code is a return code from 0 to 5; in 3.1 it leaves out Session Present too. On
// error, which is an *InvalidError, it returns dst unchanged.
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

// Decode decodes f, a CONNACK of version v, into c. The error is a *MalformedError. A
// server without MQTT 5 answers with the CONNACK of 3.1.1, which in version 5 is such
// an error.
func (c *Connack) Decode(f Frame, v Version) error {
	*c = Connack{}
	r := open(f, CONNACK, v)
	flags := r.byte("acknowledge flags")
	switch {
	case v == V31: // 3.1 does not use this byte [MQTT 3.1 section 3.2]
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
