package copies

import (
	"encoding/hex"
	"unique"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// record is a Copy as Copies keep it: 80 bytes, and 32 for its UID and resourceVersion. Equal texts of many copies are kept once. The
// hash of a copy that is not ours can't be read back.
type record struct {
	id           string // packed UID and resourceVersion
	from         string
	content      string
	digest, meta uint64
	kept         *Kept
	flags        flags
}

type flags uint8

const (
	ours flags = 1 << iota
	modeCreate
	modeUpdate
	terminating
	foreign
	marked
	drifted
	accessCopy
)

func (f flags) has(flag flags) bool { return f&flag != 0 }

func (r *record) mode() string {
	switch {
	case r.flags.has(modeUpdate):
		return v1alpha1.ModeUpdate
	case r.flags.has(modeCreate):
		return v1alpha1.ModeCreate
	}
	return ""
}

// binding says whether the copy is ours and in mode update: such a copy is deleted when its source's namespace is no longer above.
func (r *record) binding() bool { return r.flags.has(ours) && r.flags.has(modeUpdate) }

func (r *record) set(flag flags, on bool) {
	if on {
		r.flags |= flag
	}
}

func pack(c *Copy) *record {
	r := &record{
		id:   packID(c.UID, c.ResourceVersion),
		from: shared(c.From), content: shared(c.Hash.Content),
		digest: c.Digest, meta: c.Meta, kept: c.Kept,
	}
	r.set(ours, c.Ours)
	r.set(modeCreate, c.Hash.Mode == v1alpha1.ModeCreate)
	r.set(modeUpdate, c.Hash.Mode == v1alpha1.ModeUpdate)
	r.set(terminating, c.Terminating)
	r.set(foreign, c.Foreign)
	r.set(marked, c.Marked)
	r.set(drifted, c.Drifted)
	r.set(accessCopy, c.Access)
	return r
}

// unpack is the copy at slot. The place in its hash is that of the slot if the copy is ours.
func (r *record) unpack(slot Slot) *Copy {
	c := &Copy{
		From: r.from, Ours: r.flags.has(ours), Terminating: r.flags.has(terminating),
		Digest: r.digest, Meta: r.meta, Kept: r.kept,
		Foreign: r.flags.has(foreign), Marked: r.flags.has(marked), Drifted: r.flags.has(drifted), Access: r.flags.has(accessCopy),
	}
	c.UID, c.ResourceVersion = unpackID(r.id)
	if c.Ours {
		c.Hash = Hash{Mode: r.mode(), Place: PlaceOf(slot, r.from), Content: r.content}
	}
	return c
}

// shared returns the one string that is kept in memory for all equal ones.
func shared(s string) string { return unique.Make(s).Value() }

const uidLength = 36 // as 8-4-4-4-12 hex digits

// packID keeps a UID and a resourceVersion in one string: a zero byte, the 16 bytes of the UID, the resourceVersion. A UID
// that is written in another form is kept as it is, and a zero byte ends it.
func packID(uid, resourceVersion string) string {
	raw := make([]byte, 17, 17+len(resourceVersion))
	if !ParseUID(raw[1:], uid) {
		return uid + "\x00" + resourceVersion
	}
	return string(append(raw, resourceVersion...))
}

func unpackID(id string) (uid, resourceVersion string) {
	if len(id) < 17 || id[0] != 0 {
		for i := range len(id) {
			if id[i] == 0 {
				return id[:i], id[i+1:]
			}
		}
		return id, ""
	}
	return FormatUID([16]byte([]byte(id[1:17]))), id[17:]
}

// FormatUID writes the 16 bytes of a UID as the API server does.
func FormatUID(raw [16]byte) string {
	text := make([]byte, 0, uidLength)
	for i := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[i:i+1])
	}
	return string(text)
}

// ParseUID reads the 16 bytes of a UID. It returns false for one that FormatUID would not write so.
func ParseUID(to []byte, uid string) bool {
	if len(uid) != uidLength || uid[8] != '-' || uid[13] != '-' || uid[18] != '-' || uid[23] != '-' {
		return false
	}
	digits := uid[:8] + uid[9:13] + uid[14:18] + uid[19:23] + uid[24:]
	for i := range len(digits) {
		if d := digits[i]; (d < '0' || d > '9') && (d < 'a' || d > 'f') {
			return false // capitals would come back as small letters
		}
	}
	_, err := hex.Decode(to, []byte(digits))
	return err == nil
}
