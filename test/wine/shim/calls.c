// How the stand-ins ask the node.
#include "shim.h"

static WCHAR lower(WCHAR c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

// after returns what follows a prefix, which is compared without case, or NULL.
static const WCHAR *after(const WCHAR *text, const WCHAR *prefix) {
	for (; *prefix; prefix++, text++) {
		if (lower(*text) != *prefix) return NULL;
	}
	return text;
}

BOOL is_node_path(const WCHAR *path) {
	const WCHAR *rest = path ? after(path, L"\\\\?\\") : NULL;
	if (!rest) return FALSE;
	if (lower(rest[0]) >= 'a' && lower(rest[0]) <= 'z' && rest[1] == ':' && rest[2] == '\\') return TRUE;
	if (!(rest = after(rest, L"volume{"))) return FALSE;
	while (*rest && *rest != '}' && *rest != '\\') rest++;
	return rest[0] == '}' && rest[1] == '\\';
}

BOOL is_remote_path(const WCHAR *path) {
	const WCHAR *rest = path ? after(path, L"\\\\") : NULL;
	if (!rest) return FALSE;
	return (rest[0] != '?' && rest[0] != '.') || after(path, L"\\\\?\\unc\\") != NULL;
}

DWORD ask(WORD operation, csi_buffer *request, csi_answer *answer) {
	// A server that is gone is a device that is gone.
	if (!csi_call(operation, request, answer)) {
		*answer = (csi_answer){0};
		return ERROR_DEVICE_NOT_CONNECTED;
	}
	return answer->status;
}

DWORD ask_text(WORD operation, const WCHAR *text, csi_answer *answer) {
	csi_buffer request = {0};
	csi_put_text(&request, text, -1);
	return ask(operation, &request, answer);
}

DWORD ask_object(WORD operation, ULONGLONG object, csi_answer *answer) {
	csi_buffer request = {0};
	csi_put_u64(&request, object);
	return ask(operation, &request, answer);
}

DWORD want_nothing(WORD operation, csi_buffer *request) {
	csi_answer answer;
	DWORD error = ask(operation, request, &answer);
	csi_answer_free(&answer);
	return error;
}

BOOL finished(DWORD error) {
	if (error) SetLastError(error);
	return error == 0;
}

DWORD checked(DWORD error, const csi_answer *answer) {
	return !error && answer->body.failed ? ERROR_INVALID_DATA : error;
}
