/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transients: memory that came and went again while the weights were loaded, by the stack that asked for it. What a
 * conversion, a quantiser or a re-packing needs beside the weights is here, exact in bytes, also where no sample saw it.
 *
 *	host	 blocks and anonymous mappings of the program
 *	device	 blocks given back to the driver; VMM memory from its mapping to its unmapping
 *	reused	 device bytes that were copied to the device and then overwritten by something else, in a block that stayed:
 *		 what passes through the cache of an allocator such as PyTorch's. They were in use at most from the one copy
 *		 to the other.
 *
 * A host block that weights were copied from may also go after the last weight byte: it was still the last one's source.
 * Fed with every record of a pass, after replay has seen it.
 */
#ifndef SPARKTRACE_TRANSIENTS_H
#define SPARKTRACE_TRANSIENTS_H

#include <analyzer/model.h>
#include <analyzer/replay.h>

/* Of a block that has gone, or of a piece of one. */
struct lifetime {
	uint64_t born, gone, bytes; /* records */
	uint32_t site;
};

/* A zeroed one is empty and ready. */
struct transients {
	struct livemap live
		[TRANSIENT_KINDS]; /* what came during the load and is there; a: site, b: birth and flags */
	struct transient_site *sites;
	size_t site_count, site_room;
	uint32_t *slots; /* site + 1 by kind and stack, 0: free; open addressing */
	size_t slot_room;
	struct lifetime *lives; /* of what has gone */
	size_t life_count, life_room;
	uint64_t index; /* of the record */
	bool cut;       /* more came and went than is kept: "at once" is a lower bound */
};

/* `phase` is that of the record; `replay` has applied it already. 0 or -ENOMEM. */
int transients_record(struct transients *transients, const struct st_record *record, enum phase phase,
                      const struct replay *replay);

/* Gives the model its sites, most bytes first, and the sums. 0 or -ENOMEM. */
int transients_fill(struct transients *transients, struct model *model);

void transients_release(struct transients *transients);

#endif
