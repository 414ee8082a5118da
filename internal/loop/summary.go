package loop

import (
	"errors"
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/whatif"
	"github.com/springtide/springtide/portrait"
)

// Summary is what the last days would have been with the service under Auto: shown soon after its creation, so that
// operators can judge before they switch it on.
type Summary struct {
	// Made is when it was made, From and To bound the time that it looks at.
	Made, From, To time.Time
	// Today is what it is compared with: the autoscaler of the service, else a static count.
	Today string
	// CoreHours and CoreHoursToday compare the cost.
	CoreHours, CoreHoursToday float64
	// ViolationMinutes are the minutes in which the load would have exceeded what the replicas carry at the SLO.
	ViolationMinutes, ViolationMinutesToday int
	Verdict                                 string
}

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// Backcast replays the days of a batch by package whatif, coarsely: each hour with a portrait that has seen only the
// hours before it. It compares with what sizes the service without Springtide. The first week only learns. A service
// without a capacity a replica, or without a week of history, has no summary.
func Backcast(svc *fleet.Service, b portrait.Batch, o Options) Summary {
	k, err := whatif.Learn(svc, b, whatif.Coarse, o.Portrait, o.Forecast)
	switch {
	case errors.Is(err, whatif.ErrShort):
		return Summary{From: b.CPU.Start, To: b.CPU.End(), Verdict: "needs eight days of history"}
	case err != nil:
		return Summary{From: b.CPU.Start, To: b.CPU.End(), Verdict: "the capacity of a replica is not known yet"}
	}
	name, today := whatif.Today(svc, k)
	was, now := k.Play(name, svc, today), k.Play("Springtide", svc, &whatif.Springtide{Service: *svc})
	s := Summary{From: k.From, To: k.To, Today: name, CoreHours: now.CoreHours, CoreHoursToday: was.CoreHours,
		ViolationMinutes: now.BadMinutes, ViolationMinutesToday: was.BadMinutes}
	s.Verdict = s.verdict()
	return s
}

func (s *Summary) verdict() string {
	saved := 1 - s.CoreHours/s.CoreHoursToday
	switch {
	case s.ViolationMinutes > s.ViolationMinutesToday+10:
		return fmt.Sprintf("costs the SLO: %d minutes over the SLO against %d", s.ViolationMinutes, s.ViolationMinutesToday)
	case saved < 0.05:
		return fmt.Sprintf("little to gain: %.0f %% fewer core-hours", saved*100)
	}
	return fmt.Sprintf("worth it: %.0f %% fewer core-hours, %d minutes over the SLO against %d", saved*100,
		s.ViolationMinutes, s.ViolationMinutesToday)
}
