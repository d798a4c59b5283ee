package preflight

import (
	"os"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Host holds the limits of this machine; 0 if a limit is not known.
type Host struct {
	Soft, Hard uint64 // limits of open files
	// FirstPort and LastPort are the range of local ports.
	FirstPort, LastPort int
	// The number of connections that the kernel's packet filter tracks, and its maximum.
	Tracked, MaxTracked int
}

// ThisHost reads the limits from Linux. The caller adds the limits of open files.
func ThisHost() Host {
	var h Host
	if f := strings.Fields(read("/proc/sys/net/ipv4/ip_local_port_range")); len(f) == 2 {
		h.FirstPort, h.LastPort = number(f[0]), number(f[1])
	}
	h.Tracked = number(read("/proc/sys/net/netfilter/nf_conntrack_count"))
	h.MaxTracked = number(read("/proc/sys/net/netfilter/nf_conntrack_max"))
	return h
}

func read(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// Check compares the limits with the needs of the cases. descriptors is the largest
// need of a case. It sends nothing.
func (h Host) Check(cases []scenarios.Case, descriptors uint64) []Line {
	var lines []Line
	for _, l := range []*Line{h.files(descriptors), h.ports(cases), h.tracking(cases)} {
		if l != nil {
			lines = append(lines, *l)
		}
	}
	return lines
}

func fmtInt[T int | uint64](n T) string { return result.FormatInt(int64(n)) }

func (h Host) files(need uint64) *Line {
	switch {
	case h.Soft == 0:
		return nil
	case need > h.Soft:
		return &Line{Check: "descriptors", Status: Fail, Cause: Here,
			Message: "need ~" + fmtInt(need) + " descriptors, limit " + fmtInt(h.Soft) + " (hard " + fmtInt(h.Hard) + ")",
			Hint:    "raise the limit with ulimit -n, or use fewer --pairs, --publishers or --subscribers"}
	}
	return &Line{Check: "descriptors", Status: OK, Message: "need ~" + fmtInt(need) + ", limit " + fmtInt(h.Soft)}
}

// ports checks the local ports: each pair of local address and target has the whole
// range. The kernel searches every second port first. When half of them are in use, a
// connection needs several times the CPU.
func (h Host) ports(cases []scenarios.Case) *Line {
	have := h.LastPort - h.FirstPort + 1
	if h.LastPort == 0 {
		return nil
	}
	need := 0
	for _, c := range cases {
		pairs := max(1, len(c.Target.URLs)) * max(1, len(c.Target.SourceIPs))
		need = max(need, (c.Load.Connections()+pairs-1)/pairs)
	}
	l := &Line{Check: "ports", Status: OK, Message: "need " + fmtInt(need) + " of " + fmtInt(have) + " local ports per source address and target"}
	switch {
	case need > have:
		l.Status, l.Cause = Fail, Here
		l.Hint = "add local addresses with --source-ip, add targets with --url, or widen net.ipv4.ip_local_port_range"
	case 2*need > have:
		l.Status, l.Hint = Warn, "connecting becomes several times slower when half of the ports are in use: add --source-ip addresses"
	}
	return l
}

func (h Host) tracking(cases []scenarios.Case) *Line {
	if h.MaxTracked == 0 {
		return nil
	}
	need, free := 0, h.MaxTracked-h.Tracked
	for _, c := range cases {
		need = max(need, c.Load.Connections())
	}
	l := &Line{Check: "conntrack", Status: OK, Message: "need " + fmtInt(need) + " entries of the connection tracking table, " + fmtInt(free) + " free"}
	if need > free {
		l.Status, l.Hint = Warn, "raise net.netfilter.nf_conntrack_max, or new connections may be dropped"
	}
	return l
}
