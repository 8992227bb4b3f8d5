# SPDX-License-Identifier: Apache-2.0
# The programs that people start from do what the head of each file says.
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
bin=$CT_BUILD/bin
# The line of an example's head that begins with these words.
says() { sed -n "s/^ \*     \($2.*\)$/\1/p" "$CT_SOURCE/examples/$1.c"; }

run --nproc-per-node=4 "$bin/param_server"
expect "param_server finds its plane" is "$code $out" "0 $(says param_server '3 workers')"
run --nproc-per-node=1 "$bin/param_server"
expect "  and needs a worker" has "$code $err" "1 param_server: it takes two ranks at least"

run --nproc-per-node=4 "$bin/jacobi" four.pgm
expect "jacobi: the plate has its temperatures" is "$code $out" "0 $(says jacobi '60 x 60')"
run --nproc-per-node=6 "$bin/jacobi" six.pgm
expect "  on 6 ranks the same" is "$code ${out#* ranks, }" "0 $(says jacobi '60 x 60' | sed 's/.* ranks, //')"
"$bin/jacobi" one.pgm >/dev/null
expect "  and the same picture, to the last point" is "$(cat one.pgm | cksum) $(cat six.pgm | cksum)" "$(cat four.pgm | cksum) $(cat four.pgm | cksum)"
expect "  of 60 x 60 points" is "$(head -n 1 one.pgm) $(tail -n +2 one.pgm | wc -w)" "P2 60 60 100 3600"
run --nproc-per-node=7 "$bin/jacobi"
expect "  7 ranks can't share it" has "$code $err" "1 jacobi: 60 points can't be cut into 1 x 7 equal blocks"

run --nproc-per-node=1 "$bin/train_mlp" --epochs=3
curve=$out
expect "train_mlp reads over 95 % of the digits" awk '/^epoch 3/ { exit !($5 > 95) }' <<<"$curve"
for size in 2 4; do
    run --nproc-per-node=$size "$bin/train_mlp" --epochs=3
    expect "  the curve of $size ranks is that of one, bit by bit" is "$out" "$curve"
done
run --nproc-per-node=4 --max-restarts=1 "$bin/train_mlp" --epochs=3 --checkpoint=digits --kill=2,3
expect "  a rank that is killed costs an epoch at most" matches "$code $out" "^0 epoch 1.*goes on behind epoch [12]"
expect "  and changes nothing of the curve" is "$(grep -v '^goes' <<<"$out" | sort -u)" "$curve"
run --nproc-per-node=2 "$bin/train_mlp" --epochs=3 --checkpoint=digits
expect "  a run goes on from a checkpoint, here behind its end" is "$code $out" "0 goes on behind epoch 3"
echo nonsense >digits
run --nproc-per-node=2 "$bin/train_mlp" --checkpoint=digits
expect "  what is no checkpoint is refused" has "$code $err" "1 train_mlp: digits is no checkpoint of this program"
run --nproc-per-node=3 "$bin/train_mlp"
expect "  3 ranks are refused" has "$code $err" "1 train_mlp: 1, 2, 4 or 8 ranks, not 3"

# MNIST's form: 128 digits of zeros and of bytes, which are told apart.
mkdir mnist
for set in train t10k; do
    { printf '\0\0\10\3\0\0\0\200\0\0\0\34\0\0\0\34'; for i in {1..64}; do head -c 784 /dev/zero; head -c 784 /dev/zero | tr '\0' '\377'; done; } >mnist/$set-images-idx3-ubyte
    { printf '\0\0\10\1\0\0\0\200'; for i in {1..64}; do printf '\3\7'; done; } >mnist/$set-labels-idx1-ubyte
done
run --nproc-per-node=2 "$bin/train_mlp" --data=mnist --epochs=30
expect "  it reads MNIST's files" matches "$code $out" "^0 .*epoch 30: loss [0-9.]+, 100.0 %"
run "$bin/train_mlp" --data=/nowhere
expect "  files that are not there are named" has "$code $err" "1 train_mlp: rank 0: /nowhere/train-images-idx3-ubyte: No such file"
finish
