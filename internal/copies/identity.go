package copies

import (
	"encoding/hex"
	"strconv"
)

// Identity is the compact form of a copy's UID, resourceVersion and Kept: 32 bytes, and no allocation for nearly all
// copies.
type Identity struct {
	uid             [16]byte
	resourceVersion uint64
	rare            *rare
}

// rare holds values that few copies have: metadata that others added, or a UID or resourceVersion that the fixed fields
// cannot hold (fits is false).
type rare struct {
	kept                 *Kept
	uid, resourceVersion string
	fits                 bool
}

// PackIdentity returns the compact form. Unpack returns the values again.
func PackIdentity(uid, resourceVersion string, kept *Kept) (i Identity) {
	fits := parseUID(i.uid[:], uid)
	if n, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil && (n == 0 && resourceVersion == "0" || resourceVersion[0] != '0') {
		i.resourceVersion = n
	} else {
		fits = false
	}
	if !fits {
		i.rare = &rare{kept: kept, uid: uid, resourceVersion: resourceVersion}
	} else if kept != nil {
		i.rare = &rare{kept: kept, fits: true}
	}
	return i
}

// Unpack returns what PackIdentity got.
func (i Identity) Unpack() (uid, resourceVersion string, kept *Kept) {
	if i.rare != nil {
		kept = i.rare.kept
	}
	if i.rare != nil && !i.rare.fits {
		return i.rare.uid, i.rare.resourceVersion, kept
	}
	return formatUID(i.uid), strconv.FormatUint(i.resourceVersion, 10), kept
}

const uidLength = 36 // as 8-4-4-4-12 hex digits

// formatUID writes the 16 bytes of a UID as the API server does.
func formatUID(raw [16]byte) string {
	text := make([]byte, 0, uidLength)
	for i := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[i:i+1])
	}
	return string(text)
}

// parseUID reads the 16 bytes of a UID into to. It returns false for a text that formatUID would not write.
func parseUID(to []byte, uid string) bool {
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
