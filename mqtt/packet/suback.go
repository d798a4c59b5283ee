package packet

const ruleNoCodes = "has no reason code; one per topic filter is needed"

// Append appends s, encoded for version v, to dst. In 3.x a code is 0, 1, 2 or 0x80. On
// error, which is an *InvalidError, it returns dst unchanged.
func (s *Suback) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, SUBACK)
	w.packetID(s.PacketID)
	if v == V5 {
		w.properties(SUBACK, &s.Properties)
	}
	w.codes(s.Codes, reasonsOf(SUBACK, v))
	return w.end()
}

// reasonsOf returns the reason codes that SUBACK or UNSUBACK may have in version v.
func reasonsOf(t Type, v Version) *reasonSet {
	if v != V5 && t == SUBACK {
		return &subackReasons3
	}
	return &validReasons[t]
}

func (w *writer) codes(codes []ReasonCode, valid *reasonSet) {
	if len(codes) == 0 {
		w.fail("payload", ruleNoCodes)
	}
	for _, c := range codes {
		if !valid.has(c) {
			w.fail("reason code", ruleReason)
		}
		w.byte(byte(c))
	}
}

// codes reads reason codes up to the end of the body and appends them to dst.
func (r *reader) codes(dst []ReasonCode, valid *reasonSet) []ReasonCode {
	if r.left() == 0 {
		r.fail(ReasonProtocolError, "payload "+ruleNoCodes)
	}
	for r.left() > 0 {
		c := ReasonCode(r.byte("reason code"))
		if !valid.has(c) {
			r.failAt(r.off-1, ReasonProtocolError, ruleReason)
		}
		dst = append(dst, c)
	}
	return dst
}

// Decode decodes f, a SUBACK of version v, into s. It reuses the array of s.Codes. The
// error is a *MalformedError.
func (s *Suback) Decode(f Frame, v Version) error {
	*s = Suback{Codes: s.Codes[:0]}
	r := open(f, SUBACK, v)
	s.PacketID = r.packetID()
	if v == V5 {
		r.properties(SUBACK, &s.Properties)
	}
	s.Codes = r.codes(s.Codes, reasonsOf(SUBACK, v))
	return r.close()
}
