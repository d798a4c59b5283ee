package packet

// Append appends u, encoded for version v, to dst. On error, which is an *InvalidError, it
// returns dst unchanged.
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

// Decode decodes f, an UNSUBSCRIBE of version v, into u. It reuses the array of u.Filters.
// The error is a *MalformedError.
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
