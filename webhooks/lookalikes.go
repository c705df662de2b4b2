package webhooks

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// twins are letters and dashes that look like a character of ASCII, followed by that character. Most are from the confusables of
// Unicode Technical Standard 39.
const twins = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwкkӏlАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅS" +
	"αaιiκkνvοoρpυuΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX" + "ıiɑaɡgſf" + "\u2010-\u2011-\u2012-\u2013-\u2014-\u2212-"

var asciiOf = strings.NewReplacer(strings.Split(twins, "")...)

// warnOfLookAlikes returns a Warning for each newly listed User or Group whose name a person may take for another one of
// plain ASCII. Such a name may be right, so it is not refused.
func warnOfLookAlikes(old, now *v1alpha1.LNamespace) (warnings []string) {
	for _, list := range grants.Lists() {
		before := list.Of(old)
		for i, s := range list.Of(now) {
			if s.Kind == v1alpha1.SubjectServiceAccount || slices.Contains(before, s) {
				continue
			}
			if plain := spellPlain(s.Name); plain != s.Name {
				warnings = append(warnings, fmt.Sprintf("spec.%s[%d]: the name of %s %+q looks like %q, and has other characters: if %q is meant, "+
					"correct it", list, i, s.Kind, s.Name, plain, plain))
			}
		}
	}
	return warnings
}

// spellPlain returns the name of plain ASCII that looks like name; name itself if there is none.
func spellPlain(name string) string {
	plain := asciiOf.Replace(strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' { // the full-width forms, in the order of ASCII
			return r - '！' + '!'
		}
		return r
	}, name))
	if strings.ContainsFunc(plain, func(r rune) bool { return r > unicode.MaxASCII }) {
		return name
	}
	return plain
}
