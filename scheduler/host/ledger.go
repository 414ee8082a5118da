package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// chargeTries bounds the conflicts of one charge: the controller writes the status of a pool a few times a minute.
const chargeTries = 5

// charge counts pods that are to be taken in the disruption ledgers of their pools, all of one pool in one write with
// the version that was read. A charge beyond the budget is an error, and nothing of that pool is counted.
func (s *Scheduler) charge(ctx context.Context, owed []charge, now func() time.Time) error {
	byPool := map[string][]charge{}
	for _, x := range owed {
		byPool[x.pool] = append(byPool[x.pool], x)
	}
	for _, pool := range sortedKeys(byPool) {
		if err := s.chargePool(ctx, pool, byPool[pool], now); err != nil {
			return err
		}
	}
	return nil
}

// uncharge takes back what was charged for pods that stayed: the API server denied their evictions, or they were never asked for.
func (s *Scheduler) uncharge(ctx context.Context, back []charge) error {
	byPool := map[string][]charge{}
	for _, x := range back {
		byPool[x.pool] = append(byPool[x.pool], x)
	}
	var errs []error
	for _, pool := range sortedKeys(byPool) {
		errs = append(errs, s.changeLedger(ctx, pool, func(u *unstructured.Unstructured) error {
			_, ledger, err := ledgerOf(u)
			if err != nil {
				return err
			}
			for _, x := range byPool[pool] {
				ledger = ledger.Return(x.at, x.owner, 1)
			}
			return setLedger(u, &ledger)
		}))
	}
	return errors.Join(errs...)
}

func (s *Scheduler) chargePool(ctx context.Context, pool string, owed []charge, now func() time.Time) error {
	return s.changeLedger(ctx, pool, func(u *unstructured.Unstructured) error { return spend(u, owed, now()) })
}

// changeLedger changes the ledger of a pool, on the version that was read.
func (s *Scheduler) changeLedger(ctx context.Context, pool string, change func(*unstructured.Unstructured) error) error {
	resource := s.dynamic.Resource(v1alpha1.GroupVersion.WithResource("capacitypools"))
	var err error
	for range chargeTries {
		var u *unstructured.Unstructured
		if u, err = resource.Get(ctx, pool, metav1.GetOptions{}); err != nil {
			if apierrors.IsNotFound(err) {
				return nil // its ledger went with it
			}
			return fmt.Errorf("read the disruption ledger of pool %s: %w", pool, err)
		}
		if err := change(u); err != nil {
			return err
		}
		if _, err = resource.UpdateStatus(ctx, u, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("charge the disruption ledger of pool %s: %w", pool, err)
	}
	return nil
}

// spend puts charges into the status of a pool, or says which bound of its budget holds them back.
func spend(u *unstructured.Unstructured, owed []charge, now time.Time) error {
	p, ledger, err := ledgerOf(u)
	if err != nil {
		return err
	}
	spending := p.Spend(now, owed[0].all)
	pods, of := map[string]int{}, map[string]int{}
	for _, x := range owed {
		pods[x.owner]++
		of[x.owner] = x.of
	}
	for _, owner := range sortedKeys(pods) {
		if by := spending.Take(owner, of[owner], pods[owner]); by != "" {
			return errors.New("held back by the " + by)
		}
		ledger = ledger.Charge(now, owner, pods[owner])
	}
	return setLedger(u, &ledger)
}

// ledgerOf reads the ledger of a pool, with the budget that bounds it.
func ledgerOf(u *unstructured.Unstructured) (*fleet.Pool, fleet.Ledger, error) {
	data, err := u.MarshalJSON()
	if err != nil {
		return nil, fleet.Ledger{}, err
	}
	o := &v1alpha1.CapacityPool{}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, fleet.Ledger{}, fmt.Errorf("read pool %s: %w", u.GetName(), err)
	}
	p := &fleet.Pool{ID: fleet.PoolID(o.Name), Budget: facts.Budget(o), Ledger: facts.Ledger(&o.Status.Disruptions)}
	return p, p.Ledger, nil
}

func setLedger(u *unstructured.Unstructured, ledger *fleet.Ledger) error {
	status := facts.LedgerStatus(ledger)
	data, err := json.Marshal(&status)
	if err != nil {
		return err
	}
	var disruptions map[string]any
	if err := json.Unmarshal(data, &disruptions); err != nil {
		return err
	}
	return unstructured.SetNestedMap(u.Object, disruptions, "status", "disruptions")
}
