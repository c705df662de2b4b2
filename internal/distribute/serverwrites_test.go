package distribute

import (
	"encoding/json"
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

var verbNames = map[Verb]string{
	Create: "create", Update: "update", Remark: "remark", Inspect: "inspect", Examine: "examine", Adopt: "adopt", Overwrite: "overwrite",
	Delete: "delete", HandBack: "hand back", Unlock: "unlock",
}

func (c *cluster) writeCopy(w WriteCopy) CopyWritten {
	if c.refuse != nil {
		if err := c.refuse(w.Action.Verb, w.Slot); err != nil {
			return CopyWritten{WriteCopy: w, Err: err}
		}
	}
	answer, err := c.carryOut(w)
	if w.Action.Verb != Inspect && w.Action.Verb != Examine && err == nil {
		c.writes = append(c.writes, verbNames[w.Action.Verb]+" "+w.Slot.Namespace)
	}
	return CopyWritten{WriteCopy: w, Answer: answer, Err: err}
}

// carryOut carries out a write as controllers/distribution and the API server do.
func (c *cluster) carryOut(w WriteCopy) (a Answer, err error) {
	namespace, verb := w.Slot.Namespace, w.Action.Verb
	object := c.objects[namespace+"/settings"]
	switch {
	case w.Confirm && c.rds["rd"] == nil:
		return a, errors.New("the ResourceDistribution is deleted")
	case verb == Create && object != nil:
		return Answer{Found: metadataOf(object)}, nil
	case verb == Create:
	case object == nil:
		return Answer{Absent: true}, nil
	case metadataOf(object).ResourceVersion != w.SeenVersion():
		return a, ErrStale
	}
	switch verb {
	case Inspect:
		return Answer{Compared: true, Same: w.Distribution.Holds(object, w.Copy.Foreign)}, nil
	case Examine:
		return Answer{Compared: true, Same: w.Distribution.Template.Identical(object)}, nil
	case Delete:
		c.remove(namespace + "/settings")
		return Answer{Deleted: true}, nil
	}
	return Answer{Written: c.write(namespace, c.bodyOf(w, object), v1alpha1.OperatorName)}, nil
}

// bodyOf returns the object as it is after a PUT or POST.
func (c *cluster) bodyOf(w WriteCopy, object map[string]any) map[string]any {
	d := w.Distribution
	rewrite := func(change func(*metav1.ObjectMeta)) map[string]any {
		changed := maps.Clone(object)
		if err := ChangeMeta(changed, change); err != nil {
			c.t.Fatal(err)
		}
		return changed
	}
	var over *copies.Copy
	isAdopted := w.Action.Verb == Overwrite
	switch w.Action.Verb {
	case Remark:
		return rewrite(func(meta *metav1.ObjectMeta) { d.Remark(meta, w.Copy) })
	case Adopt:
		return rewrite(d.Adopt)
	case HandBack:
		return rewrite(HandBackMeta)
	case Unlock:
		return rewrite(UnlockMeta)
	case Update:
		over, isAdopted = w.Copy.Over(d.Template), w.Copy.Adopted
	case Overwrite:
		over = OverForeign(metadataOf(object), d.Template)
	}
	body, err := d.Template.Marked(w.Slot, d.Marks(w.Slot.Namespace, isAdopted), over)
	if err != nil {
		c.t.Fatal(err)
	}
	made := map[string]any{}
	if err := json.Unmarshal(body, &made); err != nil {
		c.t.Fatal(err)
	}
	return made
}
