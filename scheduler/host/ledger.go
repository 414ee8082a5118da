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

// charge counts pods that are to be taken in the disruption ledgers of their pools, all of one pool in one write with the version that was read. What the
// budget does not allow is an error, and nothing of that pool is counted.
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

func (s *Scheduler) chargePool(ctx context.Context, pool string, owed []charge, now func() time.Time) error {
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
		if err := spend(u, owed, now()); err != nil {
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
	data, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	o := &v1alpha1.CapacityPool{}
	if err := json.Unmarshal(data, o); err != nil {
		return fmt.Errorf("read pool %s: %w", u.GetName(), err)
	}
	p := fleet.Pool{ID: fleet.PoolID(o.Name), Budget: facts.Budget(o), Ledger: facts.Ledger(&o.Status.Disruptions)}
	spending, ledger := p.Spend(now, owed[0].all), p.Ledger
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
	status := facts.LedgerStatus(&ledger)
	if data, err = json.Marshal(&status); err != nil {
		return err
	}
	var disruptions map[string]any
	if err := json.Unmarshal(data, &disruptions); err != nil {
		return err
	}
	return unstructured.SetNestedMap(u.Object, disruptions, "status", "disruptions")
}
