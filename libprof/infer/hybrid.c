// experiment only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include "libprof/infer/counts.h"
void hybrid_apply(const struct mp_cfg *cfg, struct mp_counts *c);
static void *rd(FILE *f, size_t n){ void *p = calloc(n+1,1); if (fread(p,1,n,f)!=n) abort(); return p; }
static double fsum(const struct mp_cfg *cfg, const double *v, uint32_t f){ double s=0; const struct mp_func*fn=&cfg->funcs[f]; for(uint32_t b=fn->first_block;b<fn->first_block+fn->nr_blocks;b++) s+=v[b]*cfg->blocks[b].nr_insns; return s; }
static void take(double *dst,const double*src,uint32_t a,uint32_t n,double k){ for(uint32_t i=a;i<a+n;i++) dst[i]=src[i]*k; }
void hybrid_apply(const struct mp_cfg *cfg, struct mp_counts *c)
{
	const char *dump=getenv("HYB_DUMP"),*load=getenv("HYB_LOAD"),*how=getenv("HYB_TAKE"),*fl=getenv("HYB_FUNCS"),*s;
	if (dump){ FILE*f=fopen(dump,"w"); fwrite(c->block,8,cfg->nr_blocks,f); fwrite(c->edge,8,cfg->nr_edges,f); fwrite(c->samples,8,cfg->nr_blocks,f); fclose(f);}
	if (load){
		FILE*f=fopen(load,"r"); double*B=rd(f,8ul*cfg->nr_blocks),*E=rd(f,8ul*cfg->nr_edges); uint64_t*S=rd(f,8ul*cfg->nr_blocks); fclose(f);
		double t=0,T=0; for(uint32_t i=0;i<cfg->nr_funcs;i++){t+=fsum(cfg,c->block,i);T+=fsum(cfg,B,i);}
		for(uint32_t i=0;i<cfg->nr_funcs;i++){
			const struct mp_func*fn=&cfg->funcs[i]; if(!fn->nr_blocks)continue;
			if(fl){ bool in=false; char*dup=strdup(fl); for(char*p=strtok(dup,",");p;p=strtok(NULL,",")) in|= strtoull(p,0,16)==fn->vaddr; free(dup); if(getenv("HYB_NOT")) in=!in; if(!in) continue; }
			const struct mp_block*last=&cfg->blocks[fn->first_block+fn->nr_blocks-1]; uint32_t fe=cfg->blocks[fn->first_block].first_edge, ne=last->first_edge+last->nr_edges-fe;
			double a=fsum(cfg,c->block,i),A=fsum(cfg,B,i);
			if(!strcmp(how,"all")){ take(c->block,B,fn->first_block,fn->nr_blocks,t/T); take(c->edge,E,fe,ne,t/T); for(uint32_t b=fn->first_block;b<fn->first_block+fn->nr_blocks;b++) c->samples[b]=S[b]; }
			else if(!strcmp(how,"inside")){ /* exact inside, total of own */ double k=A>0?a/A:0; if(A<=0) continue; take(c->block,B,fn->first_block,fn->nr_blocks,k); take(c->edge,E,fe,ne,k); for(uint32_t b=fn->first_block;b<fn->first_block+fn->nr_blocks;b++) c->samples[b]=S[b]; }
			else if(!strcmp(how,"totals")){ double k= a>0? A/a*t/T:0; if(a<=0) continue; take(c->block,c->block,fn->first_block,fn->nr_blocks,k); take(c->edge,c->edge,fe,ne,k); }
			else if(!strcmp(how,"edges")){ for(uint32_t b=fn->first_block;b<fn->first_block+fn->nr_blocks;b++){ const struct mp_block*bl=&cfg->blocks[b]; double es=0; for(uint32_t e=bl->first_edge;e<bl->first_edge+bl->nr_edges;e++) es+=E[e]; if(es>0) for(uint32_t e=bl->first_edge;e<bl->first_edge+bl->nr_edges;e++) c->edge[e]=c->block[b]*E[e]/(bl->nr_edges==1&&bl->term==MP_TERM_COND&&B[b]>es?B[b]:es);} }
			else if(!strcmp(how,"zero")){ /* what exact says did not run: zero */ for(uint32_t b=fn->first_block;b<fn->first_block+fn->nr_blocks;b++) if(!(B[b]>0)){ c->block[b]=0;c->samples[b]=0; const struct mp_block*bl=&cfg->blocks[b]; for(uint32_t e=bl->first_edge;e<bl->first_edge+bl->nr_edges;e++) c->edge[e]=0;} for(uint32_t e=fe;e<fe+ne;e++) if(!(B[cfg->edges[e].to]>0)) c->edge[e]=0; }
			else abort();
		}
	}
	if((s=getenv("HYB_EXACT"))) c->exact=atoi(s);
	if((s=getenv("HYB_COMPLETE"))) c->complete=atoi(s);
}
