package packet

// Append appends u as one control packet of version v. On an error, an
// *InvalidError, dst is returned as it was.
func (u *Unsubscribe) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, UNSUBSCRIBE)
	w.packetID(u.PacketID)
	if v == V5 {
		w.properties(UNSUBSCRIBE, &u.Properties)
	}
	// [MQTT-3.10.3-2]
	if len(u.Filters) == 0 {
		w.fail("payload", ruleNoFilter)
	}
	for _, s := range u.Filters {
		w.filter(s, v)
	}
	return w.end()
}

// Decode reads f, an UNSUBSCRIBE of version v, into u, whose Filters array is
// used again. The error is a *MalformedError.
func (u *Unsubscribe) Decode(f Frame, v Version) error {
	*u = Unsubscribe{Filters: u.Filters[:0]}
	r := open(f, UNSUBSCRIBE, v)
	u.PacketID = r.packetID()
	if v == V5 {
		r.properties(UNSUBSCRIBE, &u.Properties)
	}
	// [MQTT-3.10.3-2]
	if r.left() == 0 {
		r.fail(ReasonProtocolError, "payload "+ruleNoFilter+" [MQTT-3.10.3-2]")
	}
	for r.left() > 0 {
		u.Filters = append(u.Filters, r.filter(v))
	}
	return r.close()
}
