package traces

import "time"

// Kind says what the values of a trace count.
type Kind string

// The kinds of traces.
const (
	Requests Kind = "requests" // requests, queries or purchases: a service with HTTP metrics
	People   Kind = "people"   // people or vehicles at a place: their tide stands for a service's requests
	CPU      Kind = "cpu"      // CPU in use: a service that exports no requests
)

// Trace is one shipped series.
type Trace struct {
	// Name is short and fit for a Kubernetes name.
	Name string
	// Group is the namespace that services made from the trace live in.
	Group string
	// File is the path under data/, Step its interval.
	File string
	Step time.Duration
	Kind Kind
	// Holidays is the file of the holidays that fall into the trace; empty where none is known.
	Holidays string
	parts    []part
}

// part is a run of rows with a clock of its own.
type part struct {
	// from and to bound the rows; to is exclusive, and 0 means to the end.
	from, to int
	// start is the time of the first row; zero means the stamp that the file gives.
	start time.Time
}

// Catalog lists the shipped traces in the order in which Services takes from them.
func Catalog() []Trace {
	const minute = time.Minute
	return []Trace{
		{Name: "mongo-01", Group: "cloud", File: "cloud/ms-mongo-01.csv.gz", Step: minute, Kind: Requests},
		{Name: "mongo-02", Group: "cloud", File: "cloud/ms-mongo-02.csv.gz", Step: minute, Kind: Requests},
		{Name: "ingress-01", Group: "cloud", File: "cloud/ms-ingress-01.csv.gz", Step: minute, Kind: Requests},
		// The file begins with six days of zeros: the service did not exist yet.
		{Name: "ingress-02", Group: "cloud", File: "cloud/ms-ingress-02.csv.gz", Step: minute, Kind: Requests, parts: []part{{from: 10038}}},
		{Name: "worldcup98", Group: "web", File: "web/worldcup98-requests.csv.gz", Step: minute, Kind: Requests},
		// The file joins two logs without their pause. The second log begins on 1 August (the archive's outage from 14:52 that day is
		// found at minute 892 after this row), so it is dated from there.
		{Name: "nasa", Group: "web", File: "web/nasa-http-requests.csv.gz", Step: minute, Kind: Requests, parts: []part{
			{to: 39692},
			{from: 39693, start: time.Date(1995, 8, 1, 0, 0, 0, 0, time.UTC)},
		}},
		{Name: "google-cell", Group: "cloud", File: "cluster/google2019-cell-cpu.csv.gz", Step: 5 * minute, Kind: CPU},
		{Name: "purchase-02", Group: "shop", File: "cloud/ms-purchase-02.csv.gz", Step: time.Hour, Kind: Requests},
		{Name: "purchase-03", Group: "shop", File: "cloud/ms-purchase-03.csv.gz", Step: time.Hour, Kind: Requests},
		{Name: "ecommerce", Group: "shop", File: "cloud/ms-ecommerce-api-01.csv.gz", Step: time.Hour, Kind: Requests},
		{Name: "southern-cross", Group: "city", File: "tides/pedestrian-southern-cross.csv.gz", Step: time.Hour, Kind: People},
		{Name: "bourke-st", Group: "city", File: "tides/pedestrian-bourke-st-mall.csv.gz", Step: time.Hour, Kind: People},
		{Name: "i94", Group: "road", File: "tides/metro-i94-traffic.csv.gz", Step: time.Hour, Kind: People, Holidays: "tides/metro-i94-holidays.csv"},
	}
}
