/* SPDX-License-Identifier: Apache-2.0 */
#include "elffile.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct elffile {
	int fd;
	Elf *elf;
};

static void close_file(struct elffile *file)
{
	elf_end(file->elf);
	close(file->fd);
}

/* Mapped, not read: the pages are the page cache's, and there is no copy of a large table. */
static int open_file(const char *path, uint64_t ino, struct elffile *ret_file)
{
	struct elffile file = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	struct stat stat_now;

	if (file.fd < 0)
		return -errno;
	if (fstat(file.fd, &stat_now) || stat_now.st_ino != ino || !S_ISREG(stat_now.st_mode)) {
		close(file.fd);
		return -ESTALE;
	}
	elf_version(EV_CURRENT);
	file.elf = elf_begin(file.fd, ELF_C_READ_MMAP, NULL);
	if (!file.elf || elf_kind(file.elf) != ELF_K_ELF) {
		close_file(&file);
		return -ENOEXEC;
	}
	*ret_file = file;
	return 0;
}

/* --- where and who --------------------------------------------------------------------------- */

static uint64_t build_id_of(Elf_Data *data)
{
	size_t at = 0, name, desc;
	uint64_t id = 0;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const unsigned char *bytes = (const unsigned char *)data->d_buf + desc;
		int i;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || note.n_descsz < 8 ||
		    memcmp((const char *)data->d_buf + name, "GNU", 4))
			continue;
		for (i = 0; i < 8; i++)
			id = id << 8 | bytes[i];
		return id;
	}
	return 0;
}

int elffile_look(const char *path, uint64_t ino, uint64_t start, uint64_t offset, uint64_t *ret_bias,
                 uint64_t *ret_build_id)
{
	struct elffile file;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t count = 0, i;
	GElf_Phdr head;
	int err = open_file(path, ino, &file);

	if (err)
		return err;
	elf_getphdrnum(file.elf, &count);
	for (i = 0; i < count && gelf_getphdr(file.elf, (int)i, &head); i++) {
		/* The mapping begins at a page, its segment perhaps within that page. */
		if (head.p_type == PT_LOAD && (head.p_flags & PF_X) && offset + page > head.p_offset &&
		    offset < head.p_offset + head.p_filesz)
			*ret_bias = start - offset - (head.p_vaddr - head.p_offset);
		if (head.p_type == PT_NOTE && !*ret_build_id)
			*ret_build_id = build_id_of(
				elf_getdata_rawchunk(file.elf, (int64_t)head.p_offset, head.p_filesz,
			                             head.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
	}
	close_file(&file);
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

static Elf_Scn *find_table(Elf *elf, GElf_Word type, GElf_Shdr *ret_head)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret_head) && ret_head->sh_type == type)
			return section;
	return NULL;
}

/* The first name whose address is not below. */
static size_t lower(const struct elffile_name *names, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of aliases the one that is exported and has the fewest underscores in front. */
static int rank_of(const GElf_Sym *symbol, const char *text)
{
	return (GELF_ST_BIND(symbol->st_info) == STB_LOCAL ? 0 : 100) - (int)strspn(text, "_") + 10;
}

static void offer(struct elffile_name *name, const GElf_Sym *symbol, const char *text)
{
	int rank = rank_of(symbol, text);
	char *copy;

	/* An inner function within an outer one starts later. */
	if (name->name &&
	    (symbol->st_value < name->start || (symbol->st_value == name->start && rank <= name->rank)))
		return;
	copy = strdup(text);
	if (!copy)
		return;
	free(name->name);
	name->name = copy;
	name->start = symbol->st_value;
	name->rank = rank;
}

static bool is_function(const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size;
}

static void name_from(Elf *elf, Elf_Scn *section, const GElf_Shdr *head, struct elffile_name *names,
                      size_t count)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t symbols = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0, i, at;
	GElf_Sym symbol;

	for (i = 0; i < symbols && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *text;

		if (!is_function(&symbol))
			continue;
		at = lower(names, count, symbol.st_value);
		if (at == count || names[at].address - symbol.st_value >= symbol.st_size)
			continue;
		text = elf_strptr(elf, head->sh_link, symbol.st_name);
		for (; text && *text && at < count && names[at].address - symbol.st_value < symbol.st_size;
		     at++)
			offer(&names[at], &symbol, text);
	}
}

int elffile_name(const char *path, uint64_t ino, struct elffile_name *names, size_t count)
{
	struct elffile file;
	Elf_Scn *section;
	GElf_Shdr head;
	int err = open_file(path, ino, &file);

	if (err)
		return err;
	section = find_table(file.elf, SHT_SYMTAB, &head);
	if (!section)
		section = find_table(file.elf, SHT_DYNSYM, &head);
	if (section)
		name_from(file.elf, section, &head, names, count);
	close_file(&file);
	return 0;
}
