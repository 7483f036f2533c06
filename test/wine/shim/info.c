// What a handle says of its object, and its deletion.
#include "shim.h"

// Classes and flags that older headers lack. Source: winbase.h, minwinbase.h.
enum { CLASS_ID = 18, CLASS_DISPOSITION_EX = 21 };
#define DISPOSITION_DELETE 0x1
#define DISPOSITION_IGNORE_READONLY 0x10

typedef struct {
	DWORD attributes, tag;
	ULONGLONG sizeBytes, volumeSerial;
	BYTE id[16];
} object_info;

static DWORD info_of(ULONGLONG object, object_info *info) {
	csi_answer answer;
	DWORD error = ask_object(CSI_INFO, object, &answer);
	*info = (object_info){0};
	if (!error) {
		info->attributes = csi_get_u32(&answer.body);
		info->tag = csi_get_u32(&answer.body);
		info->sizeBytes = csi_get_u64(&answer.body);
		info->volumeSerial = csi_get_u64(&answer.body);
		const BYTE *id = csi_get_raw(&answer.body, sizeof info->id);
		if (id) CopyMemory(info->id, id, sizeof info->id);
	}
	error = checked(error, &answer);
	csi_answer_free(&answer);
	return error;
}

BOOL WINAPI my_GetFileInformationByHandle(HANDLE h, LPBY_HANDLE_FILE_INFORMATION out) {
	ULONGLONG object = object_of(h);
	if (!object) return GetFileInformationByHandle(h, out);
	object_info info;
	DWORD error = info_of(object, &info);
	if (error) return finished(error);
	*out = (BY_HANDLE_FILE_INFORMATION){
		.dwFileAttributes = info.attributes,
		.dwVolumeSerialNumber = (DWORD)info.volumeSerial,
		.nFileSizeHigh = (DWORD)(info.sizeBytes >> 32),
		.nFileSizeLow = (DWORD)info.sizeBytes,
		.nNumberOfLinks = 1,
	};
	CopyMemory(&out->nFileIndexLow, info.id, 4); // the older number is the first half of the newer
	CopyMemory(&out->nFileIndexHigh, info.id + 4, 4);
	return TRUE;
}

// give fills the buffer of a class whose answer has a fixed size.
static DWORD give(void *buffer, DWORD size, const void *answer, DWORD answerSize) {
	if (size < answerSize) return ERROR_BAD_LENGTH;
	CopyMemory(buffer, answer, answerSize);
	return 0;
}

static DWORD give_info(ULONGLONG object, int class, void *buffer, DWORD size) {
	object_info info;
	DWORD error = info_of(object, &info);
	if (error) return error;
	switch (class) {
	case FileBasicInfo: {
		FILE_BASIC_INFO basic = {.FileAttributes = info.attributes}; // the node has no times
		return give(buffer, size, &basic, sizeof basic);
	}
	case FileStandardInfo: {
		FILE_STANDARD_INFO standard = {
			.AllocationSize.QuadPart = (LONGLONG)info.sizeBytes,
			.EndOfFile.QuadPart = (LONGLONG)info.sizeBytes,
			.NumberOfLinks = 1,
			.Directory = (info.attributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
		};
		return give(buffer, size, &standard, sizeof standard);
	}
	case FileAttributeTagInfo: {
		FILE_ATTRIBUTE_TAG_INFO tag = {info.attributes, info.tag};
		return give(buffer, size, &tag, sizeof tag);
	}
	case CLASS_ID: {
		struct {
			ULONGLONG volumeSerial;
			BYTE id[16];
		} id = {.volumeSerial = info.volumeSerial};
		CopyMemory(id.id, info.id, sizeof id.id);
		return give(buffer, size, &id, sizeof id);
	}
	}
	return ERROR_INVALID_PARAMETER;
}

BOOL WINAPI my_GetFileInformationByHandleEx(HANDLE h, FILE_INFO_BY_HANDLE_CLASS class, LPVOID buffer, DWORD size) {
	ULONGLONG object = object_of(h);
	if (!object) return GetFileInformationByHandleEx(h, class, buffer, size);
	switch ((int)class) {
	case FileFullDirectoryInfo:
		return finished(list_folder(h, object, FALSE, buffer, size));
	case FileFullDirectoryRestartInfo:
		return finished(list_folder(h, object, TRUE, buffer, size));
	}
	return finished(give_info(object, (int)class, buffer, size));
}

// delete takes the name of an object away. Windows spares a read-only file unless it
// is told to ignore that.
static DWORD delete(ULONGLONG object, BOOL ignoreReadOnly) {
	csi_buffer request = {0};
	object_info info;
	DWORD error = ignoreReadOnly ? 0 : info_of(object, &info);
	if (!error && !ignoreReadOnly && (info.attributes & FILE_ATTRIBUTE_READONLY)) error = ERROR_ACCESS_DENIED;
	if (error) return error;
	csi_put_u64(&request, object);
	return want_nothing(CSI_DELETE, &request);
}

// The node deletes at once, as Windows does with POSIX semantics; the older request
// would wait until the handle is closed.
BOOL WINAPI my_SetFileInformationByHandle(HANDLE h, FILE_INFO_BY_HANDLE_CLASS class, LPVOID buffer, DWORD size) {
	ULONGLONG object = object_of(h);
	if (!object) return SetFileInformationByHandle(h, class, buffer, size);
	DWORD flags;
	switch ((int)class) {
	case FileDispositionInfo:
		if (size < sizeof(BOOLEAN)) return finished(ERROR_BAD_LENGTH);
		flags = *(BOOLEAN *)buffer ? DISPOSITION_DELETE : 0;
		break;
	case CLASS_DISPOSITION_EX:
		if (size < sizeof(DWORD)) return finished(ERROR_BAD_LENGTH);
		flags = *(DWORD *)buffer;
		break;
	default:
		return finished(ERROR_INVALID_PARAMETER);
	}
	if (!(flags & DISPOSITION_DELETE)) return TRUE;
	return finished(delete(object, (flags & DISPOSITION_IGNORE_READONLY) != 0));
}

// form_of says whether the node's answer is in the form that was asked for. The node
// gives the name with a drive letter or a mounted folder, and the one with the
// volume's GUID for a volume that has neither; in that case Windows has no DOS name.
static DWORD form_of(const WCHAR *path, DWORD flags) {
	DWORD form = flags & (VOLUME_NAME_GUID | VOLUME_NAME_NT | VOLUME_NAME_NONE);
	BOOL guid = path[4] == 'V' && path[5] == 'o'; // behind \\?\ stands a letter, UNC or Volume{
	if (form == VOLUME_NAME_DOS) return guid ? ERROR_PATH_NOT_FOUND : 0;
	return form == VOLUME_NAME_GUID && guid ? 0 : ERROR_NOT_SUPPORTED;
}

DWORD WINAPI my_GetFinalPathNameByHandleW(HANDLE h, LPWSTR buffer, DWORD size, DWORD flags) {
	ULONGLONG object = object_of(h);
	if (!object) return GetFinalPathNameByHandleW(h, buffer, size, flags);
	csi_answer answer;
	DWORD length = 0;
	WCHAR *path = NULL;
	DWORD error = ask_object(CSI_FINAL_PATH, object, &answer);
	if (!error) path = csi_get_text(&answer.body, &length);
	error = checked(error, &answer);
	csi_answer_free(&answer);
	if (!error) error = length < 4 ? ERROR_INVALID_DATA : form_of(path, flags);
	if (!error && length < size) CopyMemory(buffer, path, (length + 1) * sizeof *path);
	csi_free(path);
	if (!finished(error)) return 0;
	return length < size ? length : length + 1; // what is needed counts the NUL
}
