# One MinIO server on one folder, with a bucket for Styx. Sourced by scripts/services.

MINIO_BUCKET=styx
MINIO_KEY=minioadmin # listens on 127.0.0.1 only

minio_port="${STYX_MINIO_PORT:-}"
minio_default_port=9000

minio_start() {
    local folder="$data/minio" port
    ! runs_already minio || return 0
    require_free minio 1
    port="$(port_of minio)"
    mkdir -p "$folder/disk/$MINIO_BUCKET" # a folder at the top is a bucket
    export MINIO_ROOT_USER=$MINIO_KEY MINIO_ROOT_PASSWORD=$MINIO_KEY
    export MINIO_BROWSER=off MINIO_UPDATE=off MINIO_CALLHOME_ENABLE=off
    launch minio "$port" minio_answers "$home/bin/minio" server "$folder/disk" --address "127.0.0.1:$port"
}

minio_answers() { # PORT
    local status=""
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET /minio/health/ready HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
    IFS= read -r -t 2 status <&3 || true
    exec 3>&-
    [[ "$status" == *' 200 '* ]]
}

minio_settings() {
    echo "export STYX_STORE=s3://$MINIO_BUCKET/bank"
    echo "export STYX_S3_ENDPOINT=http://127.0.0.1:$(port_of minio)"
    echo "export STYX_S3_ACCESS_KEY=$MINIO_KEY"
    echo "export STYX_S3_SECRET_KEY=$MINIO_KEY"
}
