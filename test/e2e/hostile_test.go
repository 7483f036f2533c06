package e2e_test

import "strings"

// hostileTexts are values somebody who wants to do damage, or a program with a
// defect, puts into a request. They are the seeds of the fuzz target.
func hostileTexts() []string {
	values := []string{
		// Nothing, and next to nothing.
		"", " ", "\t", "\n", "\x00", ".", "..", "\\", "/", "-", "*", "?", "~", "0", "-1", "+1", " 1", "1 ", "0x1", "1e1", "１",
		"4294967295", "4294967296", "18446744073709551616", "null", "NaN", "{}", "%s%n%x",
		// Commands for shells, PowerShell, WQL and others that read text as program.
		`a&calc`, `a|calc`, `a;calc`, `a&&calc&&`, "a`calc`", `$(calc)`, `$(New-Item C:\pwned)`, `%PATH%`, `b %COMSPEC% /c calc`,
		`'; New-Item C:\pwned; '`, `"; New-Item C:\pwned; "`, `' OR '1'='1`, `x' OR Number=0 --`, `" | del /q C:\canary.txt`,
		`C:\k\a&calc`, `C:\k\$(calc)`, "C:\\k\\`calc`", `C:\k\a;calc`, `C:\k\b %PATH%`, `C:\k\'; calc; '`, `C:\k\"x"`, "C:\\k\\a\nb", "C:\\k\\a\r\nb",
		"C:\\k\\a\x00b", "C:\\k\\a\x1bb", "C:\\k\\x\x00\\..\\..\\canary.txt",
		// Ways out of the working folder.
		`C:\k\..`, `C:\k\..\canary.txt`, `C:\k\x\..\..\canary.txt`, `C:/k/../canary.txt`, `C:\k\.\..\x`, `C:\k\... \x`, `C:\k\.. \canary.txt`, `C:\k\x\`,
		`C:\`, `C:`, `C:k`, `C:\k`, `c:\K\X`, `C:\k-x\canary.txt`, `C:\k2\k`, `C:\k `, `C:\k.`, `C:\outside\deep`, `D:\k\x`, `\k\x`, `/k/x`, `k\x`, `\outside`,
		`C:\k\x::$DATA`, `C:\k\x:stream`, `C:\k\x:$I30:$INDEX_ALLOCATION`, `C:\k\~`, `C:\k\X~1`, `C:\USERS~1\admin`, `C:\PROGRA~1`,
		// Other name spaces, servers and devices.
		`\\?\C:\k\x`, `\\?\C:\outside\x`, `\\.\C:\k\x`, `\\.\PhysicalDrive0`, `\\.\pipe\csi-proxy-disk-v1`, `\\?\GLOBALROOT\Device\Harddisk0`,
		`\\?\Volume{00000000-0000-0000-0000-000000000000}\`, `\\?\Volume{a}\`, `\\?\Volume{00000000-0000-0000-0000-00000000000'}\`, `\??\C:\x`,
		`\\?\UNC\srv\share`, `\\srv\share\..\other`, `\\srv\share\d`, `\\srv\IPC$`, `\\localhost\C$\outside`, `\\srv\share" /user:x`, `//srv/share/d`, `\\srv`, `\\\share`, `\\srv\\share`,
		`\\srv@SSL@443\share`, `\\[::1]\share`, `NUL`, `C:\k\NUL`, `C:\k\con.txt`, `C:\k\COM1`, `C:\k\lpt¹.x`, `C:\k\aux`, `C:\k\CONIN$`, `C:\k\x\nul\y`,
		// Names of other things.
		"iqn.2026-01.io.example:a' OR '1'='1", "iqn.2026-01.io.example:a\n", "iqn." + strings.Repeat("x", 300), "eui.0123456789abcdef", "10.0.0.1", "10.0.0.1 -x", "::1", "[::1]",
		`MSiSCSI' OR Name LIKE '%`, `..\..\Services\x`, `kubelet`, "EventLog\x00", `dom\u`, `dom\u\v`, `u@dom.tld`, "ünïcödé\u202e", "\u202egnp.exe", "a\u0301", "\ufeffC:\\k\\x",
		"0123456789ab", "0123456789abcdefg", strings.Repeat("p", 513),
		// Too much, and no text at all.
		`C:\k\` + strings.Repeat("a", 300), `C:\k\` + strings.Repeat(`aaaaaaaaa\`, 3300), strings.Repeat("x", 33000), strings.Repeat(`\`, 33000), strings.Repeat("..\\", 11000),
		"\xff", "C:\\k\\\xff\xfe", "C:\\k\\\xed\xa0\x80", "\xc0\xae\xc0\xae\\x", "\xf0\x28\x8c\x28",
	}
	return values
}
