package rules

// Port is a port of the machine that a pod takes.
type Port struct {
	// IP is the address; empty and 0.0.0.0 stand for all.
	IP       string
	Protocol string // TCP where it is empty
	Port     int32
}

// Conflicts reports whether two pods with these ports cannot be on one machine.
func (p Port) Conflicts(o Port) bool {
	return p.Port > 0 && p.Port == o.Port && p.protocol() == o.protocol() && (p.all() || o.all() || p.IP == o.IP)
}

func (p Port) all() bool { return p.IP == "" || p.IP == "0.0.0.0" }

func (p Port) protocol() string {
	if p.Protocol == "" {
		return "TCP"
	}
	return p.Protocol
}
